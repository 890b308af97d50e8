import { z } from 'zod';

/**
 * How cloud-init receives its reporting configuration: in vendor data, which EC2 does not have; in
 * a part after the user data; or not at all.
 */
export const bootReporting = z.enum(['vendor-data', 'user-data', 'no']);
export type BootReporting = z.infer<typeof bootReporting>;

/** cloud-init's stages in their order. */
export const BOOT_STAGES = [
  'init-local',
  'init-network',
  'modules-config',
  'modules-final',
] as const;
export const bootStage = z.enum(BOOT_STAGES);
export type BootStage = z.infer<typeof bootStage>;

/** Errors of each kind in one report. */
export const MAX_BOOT_ERRORS = 20;
export const MAX_BOOT_ERROR_LENGTH = 500;
const errors = z.array(z.string().max(MAX_BOOT_ERROR_LENGTH)).max(MAX_BOOT_ERRORS);

/** An event that cloud-init's reporting webhook posts, if a user configured it. */
export const bootEvent = z.object({
  stage: bootStage,
  /** Null: the stage itself. */
  module: z.string().max(128).nullable(),
  phase: z.enum(['start', 'finish']),
  result: z.enum(['SUCCESS', 'WARN', 'FAIL']).nullable(),
  description: z.string().max(MAX_BOOT_ERROR_LENGTH),
});
export type BootEvent = z.infer<typeof bootEvent>;

/** Content of cloud-init's status file. */
export const bootResult = z.object({
  /** The running stage; null after the boot. */
  stage: bootStage.nullable().default(null),
  errors,
  recoverableErrors: errors,
  stages: z.array(z.object({ name: bootStage, seconds: z.number().nonnegative() })).max(4),
});
export type BootResult = z.infer<typeof bootResult>;

/** Values of `cloud-init status`. */
export const BOOT_STATUSES = ['running', 'done', 'degraded', 'error'] as const;

/** Progress of cloud-init in the present boot. */
export const bootReport = bootResult.extend({
  status: z.enum(BOOT_STATUSES),
});
export type BootReport = z.infer<typeof bootReport>;
