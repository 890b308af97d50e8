import { z } from 'zod';

const volumeRoom = z.object({
  sizeBytes: z.number().nonnegative(),
  freeBytes: z.number().nonnegative(),
});
export type VolumeRoom = z.infer<typeof volumeRoom>;

/** What the host of a node has for instances, and what of it nobody uses now. */
export const hostRoom = z.object({
  cpus: z.number().int().nonnegative(),
  memoryMiB: z.number().nonnegative(),
  memoryFreeMiB: z.number().nonnegative(),
  /** The size of the file system of the disks. */
  diskBytes: z.number().nonnegative(),
  diskFreeBytes: z.number().nonnegative(),
  /** The volume group for new disks of the template `plain`; undefined: it has none. */
  volumes: volumeRoom.optional(),
  /** The ZFS dataset for new disks of the template `zfs`; undefined: it has none. */
  zvols: volumeRoom.optional(),
});
export type HostRoom = z.infer<typeof hostRoom>;

/** The why of a choice of node, as it is told with the job: lines, and their characters. */
export const MAX_PLACEMENT_LINES = 16;
export const MAX_PLACEMENT_CHARACTERS = 256;
export const placementLines = z
  .array(z.string().max(MAX_PLACEMENT_CHARACTERS))
  .max(MAX_PLACEMENT_LINES);
