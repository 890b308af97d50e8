import { z } from 'zod';
import { installStage } from './primitives.ts';

/** Ganeti's job states. */
export const jobStatus = z.enum([
  'queued',
  'waiting',
  'running',
  'canceling',
  'canceled',
  'success',
  'error',
]);
export type JobStatus = z.infer<typeof jobStatus>;

export const jobError = z.object({
  code: z.string(),
  message: z.string(),
  hint: z.string().nullable(),
  /** Plain JSON without private values, as in the API's errors. Absent in older records. */
  details: z.record(z.string(), z.unknown()).default({}),
  /** `prerequisite`: nothing was changed. `execution`: it started and failed. */
  phase: z.enum(['prerequisite', 'execution']),
  /** Stage of the installation, if any, and the last lines of its log. */
  stage: installStage.nullable(),
  logTail: z.array(z.string()),
});
export type JobError = z.infer<typeof jobError>;

export const jobRecord = z.object({
  id: z.number().int().positive(),
  status: jobStatus,
  opcode: z.string(),
  /** `INSTANCE_CREATE(web1.example.com)`, as in Ganeti. */
  summary: z.string(),
  /** The opcode with private and secret values replaced. */
  input: z.record(z.string(), z.unknown()),
  instance: z.string().nullable(),
  /** The node that runs it. Absent in records older than clusters of several nodes. */
  node: z.string().optional(),
  /** The user, as `rapi:NAME`. Absent: root on the node. */
  submitter: z.string().optional(),
  /** Jobs whose locks this one waits for. */
  waitsFor: z.array(z.number().int()),
  /** Another reason to wait, for display: room for an installation on the node. */
  waitsBecause: z.string().nullable().optional(),
  receivedAtMs: z.number(),
  startedAtMs: z.number().nullable(),
  endedAtMs: z.number().nullable(),
  log: z.array(
    z.object({
      sequence: z.number().int(),
      atMs: z.number(),
      message: z.string(),
      /** Absent: `info`. */
      level: z.literal('warn').optional(),
    }),
  ),
  /**
   * Result of the operation; for an installation, its timings. Plain JSON without private values.
   */
  result: z.unknown(),
  error: jobError.nullable(),
});
export type JobRecord = z.infer<typeof jobRecord>;

/** Returns whether a job ends before it changes anything. */
export function isDryRun({ input }: Pick<JobRecord, 'input'>): boolean {
  return input['isDryRun'] === true;
}

/**
 * GET /v1/jobs/{id}/events, NDJSON: all events since the start of the job, then new ones. The
 * stream ends after `end`.
 */
export const jobEvent = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('status'),
    atMs: z.number(),
    status: jobStatus,
    waitsFor: z.array(z.number()),
    waitsBecause: z.string().optional(),
  }),
  z.object({
    type: z.literal('log'),
    atMs: z.number(),
    message: z.string(),
    level: z.enum(['info', 'warn']),
  }),
  z.object({ type: z.literal('stage-started'), atMs: z.number(), stage: installStage }),
  z.object({
    type: z.literal('stage-finished'),
    atMs: z.number(),
    stage: installStage,
    durationMs: z.number(),
    summary: z.string(),
  }),
  z.object({
    type: z.literal('progress'),
    atMs: z.number(),
    /** An installation's stage, or free text for other long work. */
    activity: z.string(),
    doneBytes: z.number(),
    totalBytes: z.number().nullable(),
  }),
  z.object({ type: z.literal('output'), atMs: z.number(), stage: installStage, line: z.string() }),
  /** Output of a script that runs in a guest. */
  z.object({
    type: z.literal('script-output'),
    atMs: z.number(),
    /** Number of the piece in this job, from 1. It distinguishes equal pieces. */
    number: z.number().int(),
    text: z.string(),
  }),
  z.object({ type: z.literal('end'), atMs: z.number(), job: jobRecord }),
]);
export type JobEvent = z.infer<typeof jobEvent>;
