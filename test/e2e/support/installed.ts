import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import type { Lab } from '../../../scripts/demo/lab.ts';
import { infoOf } from './ask-nodes.ts';

export async function firstDiskOf(lab: Lab, name: string): Promise<string> {
  return join(lab.paths.disksDir, (await infoOf(lab, name)).uuid, 'disk0.raw');
}

/** Returns the text of a file in the ext4 on an instance's first disk; empty without the file. */
export async function readOnDisk(lab: Lab, name: string, path: string): Promise<string> {
  return (await run('debugfs', ['-R', `cat ${path}`, await firstDiskOf(lab, name)])).stdout;
}

/** Returns every file of an instance's disks with its SHA-256. */
export async function digestDisks(
  lab: Lab,
  uuid: string,
): Promise<readonly (readonly [name: string, digest: string])[]> {
  const dir = join(lab.paths.disksDir, uuid);
  return Promise.all(
    (await readdir(dir)).map(async (name) => {
      const digest = createHash('sha256').update(await readFile(join(dir, name)));
      return [name, digest.digest('hex')] as const;
    }),
  );
}
