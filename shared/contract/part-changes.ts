import { z } from 'zod';
import { diskSpec, nicSpec } from './machine-parameters.ts';
import { macAddress } from './primitives.ts';
import { nicNetworkChanges } from './static-network.ts';

/**
 * Changes to the NICs and disks of an instance, applied in their order, as in Ganeti's `--net` and
 * `--disk` of `gnt-instance modify`.
 */
export const MAX_NICS = 8;
export const MAX_DISKS = 16;

/** Number, name or UUID of the part; -1 is the last. */
const which = z.union([z.number().int().min(-1).max(255), z.string().min(1).max(255)]);
export type WhichPart = z.infer<typeof which>;

export const nicChange = z.discriminatedUnion('action', [
  z.strictObject({
    action: z.literal('add'),
    /** Its new number; absent: the last. */
    at: z.number().int().min(0).max(255).optional(),
    nic: nicSpec,
  }),
  z.strictObject({
    action: z.literal('modify'),
    which,
    /** `null` unsets a value. */
    changes: z.strictObject({
      mac: z.union([macAddress, z.literal('auto')]).optional(),
      mode: nicSpec.shape.mode.unwrap().optional(),
      link: nicSpec.shape.link.unwrap().nullable().optional(),
      name: nicSpec.shape.name.unwrap().nullable().optional(),
      ip: nicSpec.shape.ip.unwrap().nullable().optional(),
      network: nicNetworkChanges.optional(),
      networkName: nicSpec.shape.networkName.unwrap().nullable().optional(),
      reach: nicSpec.shape.reach,
    }),
  }),
  z.strictObject({ action: z.literal('remove'), which }),
]);
export type NicChange = z.infer<typeof nicChange>;

export const diskChange = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('add'), disk: diskSpec }),
  z.strictObject({
    action: z.literal('modify'),
    which,
    changes: z.strictObject({ name: diskSpec.shape.name.unwrap().nullable() }),
  }),
  z.strictObject({ action: z.literal('remove'), which }),
]);
export type DiskChange = z.infer<typeof diskChange>;
