import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { Volume } from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import { createLoopLvm } from './loop-lvm.ts';
import { runKilled, type VolumeLab } from './volume-suite.ts';

/**
 * Makes a group on a file. Run as a program, this file is a daemon that is killed: see `script`.
 */
export async function makeLoopLab(): Promise<VolumeLab & AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-volumes-'));
  const image = join(folder, 'image');
  {
    await using file = await open(image, 'w');
    await file.truncate(40 * MIB);
  }
  const device = (await run('losetup', ['--find', '--show', image])).stdout.trim();
  const group = `gnttest${process.pid}`;
  const lab = labOf(group, device, folder);
  return {
    ...lab,
    [Symbol.asyncDispose]: async () => {
      for (const volume of await lab.lvm.listVolumes()) await lab.lvm.remove(volume);
      await run('losetup', ['--detach', device]);
      await rm(folder, { recursive: true });
      await rm(`/dev/${group}`, { recursive: true, force: true });
    },
  };
}

function labOf(group: string, device: string, folder: string): VolumeLab {
  const loop = createLoopLvm(group, device);
  const snapshots: Volume[] = [];
  // LVM makes no snapshots without a device mapper, so they exist only in the list.
  const lvm = {
    ...loop,
    listVolumes: async () => [...(await loop.listVolumes()), ...snapshots],
  };
  const makeGroup = (): Promise<string> => lvm.command('vgcreate', '--yes', group, device);
  const snapshot: VolumeLab['snapshot'] = async (made, origin) => {
    const [found] = (await loop.listVolumes()).filter(({ name }) => name === origin);
    if (found === undefined) throw new Error(`no ${origin}`);
    snapshots.push({ ...found, ...made, origin, tags: [] });
    return () => Promise.resolve(snapshots.splice(0));
  };
  const script = [import.meta.filename, folder, group, device];
  return { ...{ lvm, group, device, folder }, makeGroup, snapshot, script };
}

if (import.meta.main) {
  const [, , folder = '', group = '', device = '', operation = '', at = ''] = process.argv;
  await runKilled(labOf(group, device, folder), operation, Number(at));
}
