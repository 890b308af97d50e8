import assert from 'node:assert/strict';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { run } from '#shared/process/run.ts';
import { createInstanceDisks } from '../../../../noded/storage/create-instance-disks.ts';
import type { InstanceDisks } from '../../../../noded/storage/instance-disks.ts';
import type { SnapshotDisks } from '../../../../noded/storage/snapshot-disks.ts';
import type { VolumeSystem } from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import { createZfs } from '../../../../noded/storage/drivers/zfs/zfs.ts';
import { instanceRecord } from '../../support/records.ts';
import { UNWATCHED } from '../../support/unwatched.ts';
import { HERE, SIZE, uuidOf } from './volume-suite.ts';

/** Instances with disks in a ZFS dataset, and its content. */
export const POOL = 'tank';
export const DATASET = `${POOL}/vms`;
export const folder = '/var/tmp/zfs';

type Disk = InstanceRecord['disks'][number];
export const disk = (n: number, sizeBytes = SIZE): Disk => ({
  ...{ uuid: uuidOf(n), name: null, sizeBytes, dataset: DATASET },
});
export const record = (
  disks: readonly Disk[],
  more: Partial<InstanceRecord> = {},
): InstanceRecord => ({
  ...instanceRecord({ name: 'web1' }),
  ...{ uuid: uuidOf(1), instanceId: uuidOf(2), diskTemplate: 'zfs', installState: 'installed' },
  ...{ disks: [...disks], ...more },
});
export const before = record([disk(10), disk(11)]);
export const withSnapshots = (
  instance: InstanceRecord,
  ...uuids: readonly string[]
): InstanceRecord => ({
  ...instance,
  snapshots: uuids.map((uuid) => ({
    ...{ uuid, name: uuid.slice(0, 8), takenAtMs: 0, wasRunning: false, hostKeys: null },
    ...{ instanceId: instance.instanceId, installState: 'installed', disks: instance.disks },
  })),
});
export const [first, second] = [uuidOf(20), uuidOf(21)];

export interface Volumes {
  readonly disks: InstanceDisks;
  readonly snapshots: SnapshotDisks;
}
export function volumesOf(system: VolumeSystem): Volumes {
  const disksDir = join(folder, 'disks');
  const disks = createInstanceDisks(disksDir, { zfs: { system, ...HERE } });
  return { disks, snapshots: disks.snapshots };
}
export const zfs = createZfs();
export const { disks, snapshots } = volumesOf(zfs);

export const command = async (...args: readonly string[]): Promise<string> =>
  (await run('zfs', args)).stdout;
/** Lists the dataset's content with snapshots, except for the permanent volume. */
export const list = async (): Promise<readonly string[]> =>
  (await command('list', '-H', '-r', '-t', 'all', '-o', 'name', DATASET))
    .split('\n')
    .flatMap((path) => (path.startsWith(`${DATASET}/`) ? [path.slice(DATASET.length + 1)] : []))
    .filter((name) => !name.startsWith('precious'));
export const volumeNames = async (): Promise<readonly string[]> =>
  (await list()).filter((name) => !name.includes('@'));
/** Returns the path of the disk whose text shows the outcome. */
const pathOf = (instance: InstanceRecord): string =>
  disks.pathOf(
    instance,
    instance.disks.findIndex(({ uuid }) => uuid === uuidOf(11)),
  );
export const write = async (instance: InstanceRecord, text: string): Promise<void> => {
  await using file = await open(pathOf(instance), 'r+');
  await file.write(text);
  await file.sync();
};
export const read = async (path: string): Promise<string> => {
  await run('blockdev', ['--flushbufs', path]);
  await using file = await open(path);
  return (await file.read({ length: 6 })).buffer.toString('latin1', 0, 6);
};
export const textOf = (instance: InstanceRecord): Promise<string> => read(pathOf(instance));
export const nothing = (): Promise<void> => Promise.resolve();
export const take = (
  all: Volumes,
  instance: InstanceRecord,
  uuid: string,
  commit: () => Promise<void>,
): Promise<unknown> =>
  all.snapshots.take(instance, uuid, { ...UNWATCHED, mayCopy: true, machine: undefined, commit });
export const restore = (
  all: Volumes,
  instance: InstanceRecord,
  restoreId: string,
  commit: () => Promise<void>,
): Promise<unknown> =>
  all.snapshots.restore(instance, instance.snapshots[0] ?? assert.fail(), {
    ...UNWATCHED,
    ...{ restoreId, commit },
  });
