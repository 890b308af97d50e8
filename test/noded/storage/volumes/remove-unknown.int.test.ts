import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { createInstanceDisks } from '../../../../noded/storage/create-instance-disks.ts';
import { createLvm } from '../../../../noded/storage/drivers/lvm/lvm.ts';
import { HERE, uuidOf } from './volume-suite.ts';

test('an LVM that fails keeps the volumes of one without a record, not the disks in files', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-unknown-'));
  t.after(() => rm(dir, { recursive: true }));
  const killed = async (): Promise<string> => (await run('sh', ['-c', 'kill -9 $$'])).stdout;
  const lvm = createLvm({ read: killed, change: killed });
  const disks = createInstanceDisks(dir, { plain: { system: lvm, ...HERE } });
  const [inFiles, unclear] = [uuidOf(1), uuidOf(2)];
  for (const uuid of [inFiles, unclear]) await mkdir(join(dir, uuid));
  await writeFile(join(dir, inFiles, 'disk0.raw'), '');
  await disks.remove({ uuid: inFiles });
  assert.equal(existsSync(join(dir, inFiles)), false);
  await assert.rejects(disks.remove({ uuid: unclear }), { code: 'COMMAND_FAILED' });
  assert.ok(existsSync(join(dir, unclear)));
});
