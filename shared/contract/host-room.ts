import { z } from 'zod';

const volumeRoom = z.object({
  sizeBytes: z.number().nonnegative(),
  freeBytes: z.number().nonnegative(),
});
export type VolumeRoom = z.infer<typeof volumeRoom>;

/** Resources of a node for instances, and their unused part. */
export const hostRoom = z.object({
  cpus: z.number().int().nonnegative(),
  memoryMiB: z.number().nonnegative(),
  memoryFreeMiB: z.number().nonnegative(),
  /** Size of the file system with the disks. */
  diskBytes: z.number().nonnegative(),
  diskFreeBytes: z.number().nonnegative(),
  /** The volume group of new disks of the template `plain`; undefined: none. */
  volumes: volumeRoom.optional(),
  /** The ZFS dataset of new disks of the template `zfs`; undefined: none. */
  zvols: volumeRoom.optional(),
});
export type HostRoom = z.infer<typeof hostRoom>;

/** Bounds of the reasons for a choice of node, which a job shows. */
export const MAX_PLACEMENT_LINES = 16;
export const MAX_PLACEMENT_CHARACTERS = 256;
export const placementLines = z
  .array(z.string().max(MAX_PLACEMENT_CHARACTERS))
  .max(MAX_PLACEMENT_LINES);
