import { z } from 'zod';
import { boundedTable, boundedText } from './bounded-texts.ts';
import { osParameterName, timestampMs } from './primitives.ts';

/** What the machine of an instance is, which another node's has to be as well. */
export const machineNature = z.object({
  /** Major and minor version of QEMU, and what it calls the board. */
  qemu: z.string().max(32),
  board: z.string().max(128),
  accelerator: z.enum(['kvm', 'tcg']),
  /** The host's processor where the guest's is the same; null where QEMU makes it. */
  processor: z.object({ model: z.string().max(256), flags: z.string().max(16_384) }).nullable(),
});
export type MachineNature = z.infer<typeof machineNature>;

/** Whether a node would take a machine as it runs. */
export const machineQuestion = z.object({ nature: machineNature });

/**
 * More than a seed disk of four documents of 1 MiB has, in base64; less than a request may have.
 */
const MAX_SEED_CHARACTERS = 12 * 1024 * 1024;

/** A machine that is going to be sent. It travels sealed, and is in memory only: it has secrets. */
export const machineExpected = z.object({
  nature: machineNature,
  /** When its guest was started. */
  startedAtMs: timestampMs,
  /** QEMU's arguments: what was started otherwise cannot take its state. */
  arguments: z.array(z.string().max(65_536)).max(4096),
  /** The seed disk as its guest has it, base64. */
  seed: z.string().max(MAX_SEED_CHARACTERS).nullable(),
  /** Secret OS parameters that the guest may still read. */
  secrets: boundedTable(osParameterName, boundedText),
});
export type MachineExpected = z.infer<typeof machineExpected>;

/** Its state is whole there, its disks are synced; the serial number is the record's. */
export const machineArrived = z.object({ serialNo: z.number().int() });
