import { z } from 'zod';
import { osParameterName } from './primitives.ts';

/** The name of a profile: a set of OS parameters that instances share. */
export const profileName = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/, 'not a profile name');
/** The one that every instance has, below all others and below its OS. */
export const GLOBAL_PROFILE = 'global';
/** Profiles that an instance may have. Each is looked up whenever its parameters are. */
const MAX_PROFILES_OF_INSTANCE = 32;
/** The first counts more than those after it. */
export const profileNames = z
  .array(profileName)
  .max(MAX_PROFILES_OF_INSTANCE)
  .refine((names) => new Set(names).size === names.length, 'a profile occurs twice')
  .refine(
    (names) => !names.includes(GLOBAL_PROFILE),
    `every instance has ${GLOBAL_PROFILE} already`,
  );

/** What the store keeps of one: secrets are of instances, and in no profile. */
export const profileRecord = z.object({
  schema: z.literal(1),
  name: profileName,
  osParameters: z.record(osParameterName, z.string()),
  osParametersPrivate: z.record(osParameterName, z.string()),
});
export type ProfileRecord = z.infer<typeof profileRecord>;

/** GET /v1/profiles. */
export const profileInfo = profileRecord.omit({ schema: true, osParametersPrivate: true }).extend({
  osParametersPrivate: z.record(osParameterName, z.literal('<redacted>')),
  /** The instances that name it. */
  instances: z.array(z.string()),
});
export type ProfileInfo = z.infer<typeof profileInfo>;
