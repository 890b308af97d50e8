import { z } from 'zod';

/**
 * Ganeti's disk templates. `file`: on the node; `sharedfile`: in a folder that all nodes share;
 * `plain`: in LVM volumes of the node; `diskless`: no disks. `zfs`, in ZFS volumes of the node, is
 * an addition to Ganeti's.
 */
export const diskTemplate = z.enum(['file', 'sharedfile', 'plain', 'zfs', 'diskless']);
/** Name of a volume group (lvm(8)). */
export const volumeGroupName = z
  .string()
  .max(127)
  .regex(/^(?!-|\.{1,2}$)[A-Za-z0-9+_.-]+$/, 'expected the name of a volume group');
/** Place of new volumes: a volume group, or a thin pool as GROUP/POOL. */
export const volumePlace = z
  .string()
  .max(255)
  .regex(
    /^(?!-|\.{1,2}(?:\/|$))[A-Za-z0-9+_.-]{1,127}(?:\/(?!-|\.{1,2}$)[A-Za-z0-9+_.-]{1,127})?$/,
    'expected the name of a volume group, or GROUP/POOL for a thin pool in it',
  );
/**
 * Dataset of new volumes (zfsconcepts(7)). The path of a volume's snapshot has at most 255
 * characters.
 */
export const zfsDataset = z
  .string()
  .max(120)
  .regex(
    /^[A-Za-z][A-Za-z0-9_.:-]*(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9_.:-]+)*$/,
    'expected the name of a ZFS pool, or POOL/DATASET',
  );
export type DiskTemplate = z.infer<typeof diskTemplate>;

/** Tells whether disks are block devices of the node. */
export function hasVolumes(template: DiskTemplate): boolean {
  return template === 'plain' || template === 'zfs';
}

interface Sized {
  readonly disks: readonly { readonly sizeBytes: number }[];
}

interface WithDisks extends Sized {
  readonly diskTemplate: DiskTemplate;
  readonly snapshots?: readonly Sized[];
}

/**
 * Returns the maximum bytes that an instance's disks take of the node's file system. A block shared
 * with a snapshot is counted twice, because a write makes a copy.
 */
export function localDiskBytes(instance: WithDisks): number {
  if (instance.diskTemplate !== 'file') return 0;
  return [instance, ...(instance.snapshots ?? [])].reduce((sum, one) => sum + sumOf(one), 0);
}

/** Returns the bytes that an instance's disks take of a volume group. */
export function volumeBytes(instance: WithDisks): number {
  return instance.diskTemplate === 'plain' ? sumOf(instance) : 0;
}

/** Returns the maximum bytes that an instance's disks take of a ZFS dataset. */
export function zvolBytes(instance: WithDisks): number {
  return instance.diskTemplate === 'zfs' ? sumOf(instance) : 0;
}

function sumOf({ disks }: Sized): number {
  return disks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}
