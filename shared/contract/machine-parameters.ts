import { z } from 'zod';
import { nicReach } from './guest-reach.ts';
import { bootReporting } from './boot-report.ts';
import { MAX_DECOMMISSION_TIMEOUT_S } from './lifecycle.ts';
import { networkName } from './network.ts';
import { NOT_OF_INSTALLATIONS } from './parameter-keys.ts';
import { macAddress } from './primitives.ts';
import { nicNetwork } from './static-network.ts';

/** What a machine is made of, as an operator gives it: NICs, disks, backend, hypervisor. */

/** A path or a URL. */
export const MAX_SOURCE_LENGTH = 4096;
export const source = z.string().min(1).max(MAX_SOURCE_LENGTH);

/** The bridge of a NIC that names none. */
export const DEFAULT_LINK = 'br0';

export const nicSpec = z.strictObject({
  mac: z.union([macAddress, z.literal('auto')]).default('auto'),
  mode: z.enum(['bridged', 'user']).default('bridged'),
  /** Bridge on the host, for `bridged`. */
  link: z.string().max(15).optional(),
  name: z.string().max(255).optional(),
  /** For those who read the metadata; what the guest configures is `network`. */
  ip: z.string().max(64).optional(),
  network: nicNetwork.optional(),
  /** A network of the cluster, in place of `link`; `ip` is an address of it, or `pool`. */
  networkName: networkName.optional(),
  /** Absent: `public` from users who are bound to instances, else `all`. */
  reach: nicReach.optional(),
});
/** In whole sectors: a guest gets no others, and would see a larger disk than the record has. */
export const diskSizeBytes = z.number().int().positive().multipleOf(512);
export const diskSpec = z.strictObject({
  sizeBytes: diskSizeBytes,
  name: z.string().max(255).optional(),
});

export const beParameters = z.strictObject({
  memoryMiB: z.number().int().min(16).max(16_777_216),
  vcpus: z.number().int().min(1).max(255),
});
export const hvParameters = z.strictObject({
  accel: z.enum(['auto', 'kvm', 'tcg']).optional(),
  boot_order: z.string().max(64).optional(),
  cdrom_image_path: source.optional(),
  kernel_path: source.optional(),
  initrd_path: source.optional(),
  kernel_args: z.string().max(2048).optional(),
  /** What the machine boots with; `bios` without. */
  firmware: z.enum(['bios', 'uefi']).optional(),
  /**
   * IP TTL of the metadata service's replies; more than 1 lets containers behind the guest reach
   * it.
   */
  metadata_hop_limit: z.number().int().min(1).max(255).optional(),
  /**
   * Requests a second that the metadata service answers this instance, and how many may come at
   * once before that counts.
   */
  metadata_request_rate: z.number().int().min(1).max(1_000_000).optional(),
  metadata_request_burst: z.number().int().min(1).max(1_000_000).optional(),
  /** Connections that it holds open to this instance. */
  metadata_connections: z.number().int().min(1).max(10_000).optional(),
  /**
   * New connections a second that the packet filter lets through, from the instance's next start
   * on.
   */
  metadata_connection_rate: z.number().int().min(1).max(1_000_000).optional(),
  /** How its cloud-init is asked to tell its boot; `vendor-data` without. */
  boot_report: bootReporting.optional(),
  /** Seconds that the scripts of a guest that goes down may take; 180 without. */
  decommission_timeout: z.number().int().min(1).max(MAX_DECOMMISSION_TIMEOUT_S).optional(),
  /**
   * Whether the guest's systemd is told by SMBIOS what it needs before any network; default yes.
   */
  systemd_credentials: z.enum(['yes', 'no']).optional(),
});

/** The same parameters where some may be reset: `null` takes the default again. */
export const hvParameterChanges = resettable(hvParameters.shape);
export const beParameterChanges = resettable(beParameters.shape);

/** @param parameters of an opcode; those that would change nothing are refused by their names */
function ofInstallations<Type extends z.ZodType<object>>(parameters: Type): Type {
  return parameters.superRefine((given, context) => {
    for (const key of NOT_OF_INSTALLATIONS)
      // It is a key of theirs, since it is in them.
      if (key in given && given[key as keyof typeof given] != null)
        context.addIssue({
          code: 'custom',
          path: [key],
          message: 'has no effect on an installation: give it as a hypervisor parameter (-H)',
        });
  });
}

export const installParameters = ofInstallations(hvParameters.partial());
export const installParameterChanges = ofInstallations(hvParameterChanges);

export type HvParameters = z.infer<typeof hvParameters>;
export type BeParameters = z.infer<typeof beParameters>;

type Resettable<Shape extends z.ZodRawShape> = {
  [Key in keyof Shape]: z.ZodOptional<z.ZodNullable<Shape[Key]>>;
};

function resettable<Shape extends z.ZodRawShape>(
  shape: Shape,
): z.ZodObject<Resettable<Shape>, z.core.$strict> {
  const entries = Object.entries(shape).map(([key, type]) => [
    key,
    z.nullable(type as z.ZodType).optional(),
  ]);
  // Each key of the shape with its own type, wrapped; fromEntries says string and any.
  return z.strictObject(Object.fromEntries(entries) as Resettable<Shape>);
}
