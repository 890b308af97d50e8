import { z } from 'zod';
import { nicReach } from './guest-reach.ts';
import { hypervisorParameters, hypervisorRows, NOT_OF_INSTALLATIONS } from './parameter-keys.ts';
import { networkName } from './network.ts';
import { type SchemaOf, schemaOf } from './plain-settings.ts';
import { macAddress } from './primitives.ts';
import { nicNetwork } from './static-network.ts';

/** Default bridge of a NIC. */
export const DEFAULT_LINK = 'br0';

export const nicSpec = z.strictObject({
  mac: z.union([macAddress, z.literal('auto')]).default('auto'),
  mode: z.enum(['bridged', 'user']).default('bridged'),
  /** Bridge on the host, for `bridged`. */
  link: z.string().max(15).optional(),
  name: z.string().max(255).optional(),
  /** Shown in the metadata only. The guest configures `network`. */
  ip: z.string().max(64).optional(),
  network: nicNetwork.optional(),
  /** A network of the cluster, instead of `link`. `ip` is one of its addresses, or `pool`. */
  networkName: networkName.optional(),
  /** Absent: `public` for NICs of users who are bound to instances, else `all`. */
  reach: nicReach.optional(),
});
/** A multiple of a sector. Otherwise the guest would see a larger disk than the record. */
export const diskSizeBytes = z.number().int().positive().multipleOf(512);
export const diskSpec = z.strictObject({
  sizeBytes: diskSizeBytes,
  name: z.string().max(255).optional(),
});

export const beParameters = z.strictObject({
  memoryMiB: z.number().int().min(16).max(16_777_216),
  vcpus: z.number().int().min(1).max(255),
});
export const hvParameters = z.strictObject(makeHypervisorShape());

/** Changes of the parameters; `null` restores the default. */
export const hvParameterChanges = resettable(hvParameters.shape);
export const beParameterChanges = resettable(beParameters.shape);

/** Adds a check that refuses parameters without an effect on an installation. */
function ofInstallations<Type extends z.ZodType<Nullable<HvParameters>>>(parameters: Type): Type {
  return parameters.superRefine((given, context) => {
    for (const key of NOT_OF_INSTALLATIONS)
      if (given[key] != null)
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

type Nullable<T> = { [Key in keyof T]?: T[Key] | null };

type Rows = typeof hypervisorParameters;
type HypervisorShape = {
  -readonly [Key in keyof Rows]: z.ZodOptional<SchemaOf<Rows[Key]['type']>>;
};

function makeHypervisorShape(): HypervisorShape {
  const entries = hypervisorRows.map(([key, { type }]) => [key, schemaOf(type).optional()]);
  // fromEntries returns any. Each key has the schema of its type.
  return Object.fromEntries(entries) as HypervisorShape;
}

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
  // fromEntries returns any. Each key has its own schema, wrapped.
  return z.strictObject(Object.fromEntries(entries) as Resettable<Shape>);
}
