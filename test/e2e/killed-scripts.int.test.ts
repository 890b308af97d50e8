import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { killNode } from '../lab/kill-node.ts';
import { disposeLab } from './support/end-lab.ts';
import { findRemains } from '../chaos/find-remains.ts';
import { addOs, addWords, infoOf, jobsOf, succeed } from './support/ask-nodes.ts';
import { isFilledWith } from '../lab/is-filled.ts';

const NAME = 'web1.example.com';
let lab: Lab;
let written = '';

before(async () => {
  lab = await createLab('gnt-ks');
  written = join(lab.paths.root, 'written');
  await lab.startNode();
  const write = `while :; do echo x >>${written}; echo x | dd of="$DISK_0_PATH" conv=notrunc; sleep 0.01; done`;
  await addOs(lab, 'writes', [
    `if [ -e ${written} ]; then exit 0; fi`,
    `setsid sh -c '${write}' 2>/dev/null &`,
    `mkdir ${lab.paths.root}/mounted; mount -t tmpfs gnt-test-ks ${lab.paths.root}/mounted`,
    `${write} 2>/dev/null`,
  ]);
  await succeed(lab, 'gnt-os', 'trust', 'writes');
});

after(() => disposeLab(lab));

const bytes = async (): Promise<number> => (await stat(written).catch(() => ({ size: 0 }))).size;

test('a script that runs when the daemon is killed ends with all that it started, before its instance is called failed', async () => {
  const adding = lab.run('gnt-instance', addWords('writes', NAME));
  while ((await bytes()) < 100) await sleep(20);
  await killNode(lab);
  await lab.startNode();
  const size = await bytes();
  const { installState, uuid } = await infoOf(lab, NAME);
  assert.equal(installState, 'failed');
  await sleep(200); // twenty turns of the script's loop
  assert.equal(await bytes(), size, 'it still writes');
  assert.deepEqual(await findRemains(lab), []);
  assert.deepEqual(await readdir(lab.paths.childrenDir), []);
  assert.deepEqual(await readdir(lab.paths.hostCopiesDir).catch(() => []), []);
  await adding;
  assert.equal((await jobsOf(lab)).at(-1)?.error?.code, 'JOB_INTERRUPTED');
  await succeed(lab, 'gnt-instance', 'reinstall', '--force', '--no-start', NAME);
  assert.equal((await infoOf(lab, NAME)).installState, 'installed');
  const disk = join(lab.paths.disksDir, uuid, 'disk0.raw');
  assert.ok(isFilledWith(0, await readFile(disk)), 'somebody else wrote into its disk');
});
