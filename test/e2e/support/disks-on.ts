import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import { GIB } from '#shared/units/bytes.ts';
import type { Lab } from '../../../scripts/demo/lab.ts';

export interface OtherDisks {
  readonly folder: string;
  /** Call it after the node has stopped. */
  release(): Promise<void>;
}

/** Puts the disks of a node on a file system in a file, before the node's first start. */
export async function putDisksOn(kind: 'btrfs' | 'ext4', lab: Lab): Promise<OtherDisks> {
  const other = await mkdtemp(`/tmp/gnt-${kind}-`);
  const folder = join(other, 'disks');
  const image = join(other, 'image');
  await writeFile(image, '');
  await truncate(image, GIB);
  await run(`mkfs.${kind}`, ['-q', image]);
  await mkdir(folder);
  await run('mount', ['-o', 'loop', image, folder]);
  await run('chmod', ['0700', folder]);
  await mkdir(lab.paths.stateDir, { recursive: true });
  await symlink(folder, lab.paths.disksDir);
  return {
    folder,
    release: async () => {
      await run('umount', [folder]);
      await rm(other, { recursive: true });
    },
  };
}
