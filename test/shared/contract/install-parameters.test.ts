import assert from 'node:assert/strict';
import { test } from 'node:test';
import { installParameterChanges, installParameters } from '#shared/contract/machine-parameters.ts';

test('what would change nothing of an installation is refused by its name, and may be taken back', () => {
  for (const schema of [installParameters, installParameterChanges]) {
    assert.ok(schema.safeParse({ boot_order: 'cdrom', metadata_connections: 5 }).success);
    for (const given of [{ decommission_timeout: 60 }, { systemd_credentials: 'no' }]) {
      const { error } = schema.safeParse(given);
      assert.deepEqual(error?.issues[0]?.path, Object.keys(given));
      assert.match(error.issues[0]?.message ?? '', /has no effect on an installation/);
    }
  }
  assert.ok(installParameterChanges.safeParse({ decommission_timeout: null }).success);
});
