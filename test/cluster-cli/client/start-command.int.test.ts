import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startCommandOf } from '../../../cluster-cli/client/start-command.ts';

test('an installed daemon is started as a service, one of another root or a checkout is not', async (t) => {
  const host = await mkdtemp(join(tmpdir(), 'gnt-host-'));
  t.after(() => rm(host, { recursive: true }));
  assert.equal(startCommandOf('/', false, host), 'gnt-noded');
  assert.equal(startCommandOf('/', true, host), 'npx gnt-noded');
  const units = join(host, 'usr/lib/systemd/system');
  await mkdir(units, { recursive: true });
  await writeFile(join(units, 'gnt-noded.service'), '');
  assert.equal(startCommandOf('/', false, host), 'systemctl start gnt-noded');
  assert.equal(startCommandOf('/', true, host), 'systemctl start gnt-noded');
  assert.equal(startCommandOf('/srv/two', true, host), 'GNT_ROOT=/srv/two npx gnt-noded');
  assert.equal(startCommandOf("/a b's", false, host), "GNT_ROOT='/a b'\\''s' gnt-noded");
});
