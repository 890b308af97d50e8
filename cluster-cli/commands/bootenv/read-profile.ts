import { z } from 'zod';
import { osParameterName } from '#shared/contract/primitives.ts';
import { profileName } from '#shared/contract/profile.ts';

/** A profile in dr-provision's format. */
export const profileDocument = z.strictObject({
  Name: profileName,
  Params: z.record(osParameterName, z.json()).nullish(),
  Description: z.unknown().optional(),
  Documentation: z.unknown().optional(),
  Meta: z.unknown().optional(),
  /** Included profiles. */
  Profiles: z.array(z.string()).nullish(),
  ...{ Available: z.unknown().optional(), Bundle: z.unknown().optional() },
  ...{ Endpoint: z.unknown().optional(), Errors: z.unknown().optional() },
  ...{ Partial: z.unknown().optional(), ReadOnly: z.unknown().optional() },
  Validated: z.unknown().optional(),
});

export interface ProfileValues {
  readonly name: string;
  readonly osParameters: Record<string, string>;
}

/**
 * Converts a profile. OS parameters are texts, so other values become JSON, as a param's schema
 * reads them.
 */
export function toProfile({ Name, Params, Profiles }: z.infer<typeof profileDocument>): {
  readonly profile: ProfileValues;
  readonly leftOut: readonly string[];
} {
  const values = Object.entries(Params ?? {}).map(
    ([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)] as const,
  );
  return {
    profile: { name: Name, osParameters: Object.fromEntries(values) },
    leftOut: (Profiles ?? []).map(
      (one) => `the profile ${one} in ${Name}: name both for an instance`,
    ),
  };
}
