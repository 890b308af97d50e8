import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readUserDefaults } from '../../../../cluster-cli/commands/instance/user-defaults.ts';

test('an alias in the settings of a user is refused by name of the file', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-defaults-'));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, 'settings.yaml');
  await writeFile(path, 'launch: {size: &a 20G, memory: *a}\n');
  await assert.rejects(readUserDefaults(path), {
    code: 'VALIDATION',
    message: `${path}: aliases are not allowed`,
  });
  await writeFile(path, 'launch: {size: 20G}\n');
  assert.deepEqual(await readUserDefaults(path), { size: '20G' });
});
