import { z } from 'zod';
import { osParameterName } from './primitives.ts';

/** Name of a profile: a set of OS parameters that instances share. */
export const profileName = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/, 'not a profile name');
/** The implicit profile of every instance. It ranks below all others and below the OS. */
export const GLOBAL_PROFILE = 'global';
/** Profiles of an instance. Each use of its parameters looks them up. */
const MAX_PROFILES_OF_INSTANCE = 32;
/** The first wins. */
export const profileNames = z
  .array(profileName)
  .max(MAX_PROFILES_OF_INSTANCE)
  .refine((names) => new Set(names).size === names.length, 'a profile occurs twice')
  .refine(
    (names) => !names.includes(GLOBAL_PROFILE),
    `every instance has ${GLOBAL_PROFILE} already`,
  );

/** A profile in the store, without secrets, which belong to instances. */
export const profileRecord = z.object({
  schema: z.literal(1),
  name: profileName,
  osParameters: z.record(osParameterName, z.string()),
  osParametersPrivate: z.record(osParameterName, z.string()),
});
export type ProfileRecord = z.infer<typeof profileRecord>;

export const profileInfo = profileRecord.omit({ schema: true, osParametersPrivate: true }).extend({
  osParametersPrivate: z.record(osParameterName, z.literal('<redacted>')),
  /** Instances that name the profile. */
  instances: z.array(z.string()),
});
export type ProfileInfo = z.infer<typeof profileInfo>;
