import { mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { instanceInfo } from '#shared/contract/instance.ts';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { addOs, addWords, ask, submit, succeed } from '../e2e/support/ask-nodes.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { RELEASES } from '../lab/kept-releases.ts';
import { killNode } from '../lab/kill-node.ts';

/**
 * Keeps the store of this release for the upgrade tests of later ones. `npm run package` runs it;
 * it keeps one store for each version. The programs are available from the commit.
 */
const top = join(import.meta.dirname, '../..');
const [FIRST, SECOND, THIRD] = ['web1.example.com', 'web2.example.com', 'web3.example.com'];

/**
 * Writes a store with jobs and an interrupted installation.
 * @param file path of a new file
 */
export async function writeStore(file: string): Promise<void> {
  const lab = await createLab('gnt-kr');
  try {
    await lab.startNode();
    await addOs(lab, 'quick', ['echo system | dd of="$DISK_0_PATH" conv=notrunc']);
    await addOs(lab, 'slow', ['sleep 600']);
    for (const os of ['quick', 'slow']) await succeed(lab, 'gnt-os', 'trust', os);
    const add = (name: string, ...more: string[]): Promise<string> =>
      succeed(lab, 'gnt-instance', ...addWords('quick', name, ...more));
    await add(FIRST, '-O', 'owner=somebody');
    await add(SECOND);
    await succeed(lab, 'gnt-instance', 'modify', '--tags', 'old', FIRST);
    await succeed(lab, 'gnt-backup', 'export', FIRST);
    await succeed(lab, 'gnt-instance', 'remove', '--force', SECOND);
    const asked = { opcode: 'INSTANCE_SET_PARAMS', name: FIRST, beparams: { vcpus: 2 } };
    await submit(lab, asked);
    const disks = [{ sizeBytes: 1024 * 1024 }];
    const create = { opcode: 'INSTANCE_CREATE', name: THIRD, osType: 'slow', disks, nics: [] };
    await askSocket(lab.paths.nodedSocket, '/v1/jobs', { method: 'POST', body: create });
    await untilInstalling(lab, THIRD);
    await killNode(lab);
    const store = new DatabaseSync(lab.paths.storeFile);
    store.exec(`VACUUM INTO '${file}'`);
    store.close();
  } finally {
    await lab.dispose();
  }
}

/** Waits until the instance has a record. Its script runs or is about to. */
async function untilInstalling(lab: Lab, name: string): Promise<void> {
  for (;;) {
    const all = await ask(lab, '/v1/instances', instanceInfo.array());
    if (all.some((one) => one.name === name && one.installState === 'installing')) return;
    await sleep(50);
  }
}

/** @returns the result, or why nothing was kept */
async function keepRelease(): Promise<string> {
  // package.json of this project.
  const { version } = JSON.parse(await readFile(join(top, 'package.json'), 'utf8')) as {
    readonly version: string;
  };
  const folder = join(RELEASES, version);
  const isThere = await stat(folder).then(
    () => true,
    () => false,
  );
  if (isThere) return `${folder} is there already`;
  if (process.getuid?.() !== 0) return `${folder} is not made: that needs root`;
  const git = async (...words: string[]): Promise<string> =>
    (await run('git', ['-C', top, ...words])).stdout.trim();
  if ((await git('status', '--porcelain', '--untracked-files=no')) !== '')
    return `${folder} is not made: what is packaged is no commit`;
  await mkdir(RELEASES, { recursive: true });
  const unfinished = await mkdtemp(join(RELEASES, '.unfinished-'));
  try {
    await writeStore(join(unfinished, 'store.sqlite'));
    await writeFile(join(unfinished, 'commit'), `${await git('rev-parse', 'HEAD')}\n`);
    await run('chmod', ['-R', 'u=rwX,go=rX', unfinished]);
    await rename(unfinished, folder);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  return `${folder}: commit it with the release`;
}

if (import.meta.main) process.stdout.write(`package: ${await keepRelease()}\n`);
