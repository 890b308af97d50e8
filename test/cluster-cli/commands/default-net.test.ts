import assert from 'node:assert/strict';
import { test } from 'node:test';
import { composeChanges } from '../../../cluster-cli/commands/cluster/cluster.ts';
import { createValueSource } from '../../../cluster-cli/values/value-source.ts';

/** Returns the change that `gnt-cluster modify --default-net TEXT` submits, and its warnings. */
function change(text: string): readonly [changes: unknown, warnings: readonly string[]] {
  const warnings: string[] = [];
  const context = {
    values: createValueSource(),
    warn: (warning: string) => void warnings.push(warning),
  };
  return [composeChanges({ defaultNet: text }, context), warnings];
}

test('unsetting the default NIC warns that launch then adds one, and names the word for none', () => {
  const [changes, warnings] = change('none');
  assert.deepEqual(changes, { launchDefaults: { net: null } });
  assert.match(warnings.join(), /launch then adds a mode=user NIC.*--default-net no-nics/);
});

test('a default without NICs is taken without a warning', () => {
  assert.deepEqual(change('no-nics'), [{ launchDefaults: { net: 'none' } }, []]);
});
