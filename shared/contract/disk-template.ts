import { z } from 'zod';

/**
 * Ganeti's words for where disks are: `file`: on the node; `sharedfile`: in a folder that all nodes
 * have; `plain`: in LVM volumes of the node; `diskless`: nowhere. `zfs`, in ZFS volumes of the
 * node, is a word of ours: Ganeti has none for it.
 */
export const diskTemplate = z.enum(['file', 'sharedfile', 'plain', 'zfs', 'diskless']);
/** A volume group, as LVM takes its name (lvm(8)). */
export const volumeGroupName = z
  .string()
  .max(127)
  .regex(/^(?!-|\.{1,2}$)[A-Za-z0-9+_.-]+$/, 'expected the name of a volume group');
/** Where new volumes are made: in a group itself, or in a thin pool of it, as LVM writes it. */
export const volumePlace = z
  .string()
  .max(255)
  .regex(
    /^(?!-|\.{1,2}(?:\/|$))[A-Za-z0-9+_.-]{1,127}(?:\/(?!-|\.{1,2}$)[A-Za-z0-9+_.-]{1,127})?$/,
    'expected the name of a volume group, or GROUP/POOL for a thin pool in it',
  );
/**
 * A ZFS dataset that volumes are made in (zfsconcepts(7)): with a volume's name and that of a
 * snapshot of it a path has 255 characters at most.
 */
export const zfsDataset = z
  .string()
  .max(120)
  .regex(
    /^[A-Za-z][A-Za-z0-9_.:-]*(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9_.:-]+)*$/,
    'expected the name of a ZFS pool, or POOL/DATASET',
  );
export type DiskTemplate = z.infer<typeof diskTemplate>;

/** Whether disks are block devices of the node. */
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
 * What its disks together may take of the file system of the node that has it. A block that a disk
 * shares with its snapshot is the snapshot's alone once it is written anew.
 */
export function localDiskBytes(instance: WithDisks): number {
  if (instance.diskTemplate !== 'file') return 0;
  return [instance, ...(instance.snapshots ?? [])].reduce((sum, one) => sum + sumOf(one), 0);
}

/** What its disks together take of a volume group of the node that has it. */
export function volumeBytes(instance: WithDisks): number {
  return instance.diskTemplate === 'plain' ? sumOf(instance) : 0;
}

/** What its disks together may take of a ZFS dataset of the node that has it. */
export function zvolBytes(instance: WithDisks): number {
  return instance.diskTemplate === 'zfs' ? sumOf(instance) : 0;
}

function sumOf({ disks }: Sized): number {
  return disks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}
