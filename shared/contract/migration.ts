import { z } from 'zod';
import { boundedTable, boundedText } from './bounded-texts.ts';
import { osParameterName, timestampMs } from './primitives.ts';

/** Properties of a QEMU process that must be equal on source and target. */
export const machineNature = z.object({
  /** Major and minor version of QEMU, and its name of the board. */
  qemu: z.string().max(32),
  board: z.string().max(128),
  accelerator: z.enum(['kvm', 'tcg']),
  /** The host's processor, if the guest sees it; null for a processor model of QEMU. */
  processor: z.object({ model: z.string().max(256), flags: z.string().max(16_384) }).nullable(),
});
export type MachineNature = z.infer<typeof machineNature>;

/** Asks whether a node accepts a running instance. */
export const machineQuestion = z.object({ nature: machineNature });

/**
 * Above the base64 of a seed disk with four documents of 1 MiB, and below the limit of a request.
 */
const MAX_SEED_CHARACTERS = 12 * 1024 * 1024;

/** Announcement of a guest. It contains secrets: it travels sealed and stays in memory. */
export const machineExpected = z.object({
  nature: machineNature,
  /** Start time of the guest. */
  startedAtMs: timestampMs,
  /** QEMU's arguments. A process with other arguments cannot load the state. */
  arguments: z.array(z.string().max(65_536)).max(4096),
  /** The guest's seed disk, base64. */
  seed: z.string().max(MAX_SEED_CHARACTERS).nullable(),
  /** Secret OS parameters that the guest may still read. */
  secrets: boundedTable(osParameterName, boundedText),
});
export type MachineExpected = z.infer<typeof machineExpected>;

/** The target has the whole state and has synced the disks. The serial number is the record's. */
export const machineArrived = z.object({ serialNo: z.number().int() });
