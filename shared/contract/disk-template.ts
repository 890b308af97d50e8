import { z } from 'zod';

/**
 * Ganeti's words for where disks are: `file`: on the node; `sharedfile`: in a folder that all nodes
 * have; `diskless`: nowhere.
 */
export const diskTemplate = z.enum(['file', 'sharedfile', 'diskless']);
export type DiskTemplate = z.infer<typeof diskTemplate>;

/** What its disks together may take of the file system of the node that has it. */
export function localDiskBytes(instance: {
  readonly diskTemplate: DiskTemplate;
  readonly disks: readonly { readonly sizeBytes: number }[];
}): number {
  if (instance.diskTemplate === 'sharedfile') return 0;
  return instance.disks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}
