import { z } from 'zod';
import { installStage } from './primitives.ts';

/** Longest line that is kept of a script's output, in characters. */
export const MAX_LOG_LINE_LENGTH = 4096;
/** Events in one POST of install/events. */
export const MAX_EVENTS_PER_BATCH = 256;

/**
 * What the agent reports. `atMs` counts from the agent's kernel boot (CLOCK_BOOTTIME), since an appliance's wall clock means nothing.
 * The `result` event is the one and only proof of success.
 */
export const installEvent = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('agent-started'),
    atMs: z.number(),
    /** Kernel's uptime when the first user-space process ran, and when the agent's first line did. */
    userSpaceAtMs: z.number().nullable(),
    agentVersion: z.string().max(64),
  }),
  z.strictObject({ type: z.literal('stage-started'), atMs: z.number(), stage: installStage }),
  z.strictObject({
    type: z.literal('stage-finished'),
    atMs: z.number(),
    stage: installStage,
    /** A sentence for the reader: what was found or done. */
    summary: z.string().max(1024),
  }),
  z.strictObject({
    type: z.literal('progress'),
    atMs: z.number(),
    stage: installStage,
    doneBytes: z.number().nonnegative(),
    totalBytes: z.number().nonnegative().nullable(),
  }),
  z.strictObject({
    type: z.literal('log'),
    atMs: z.number(),
    stage: installStage,
    stream: z.enum(['stdout', 'stderr', 'agent']),
    line: z.string().max(MAX_LOG_LINE_LENGTH),
  }),
  z.strictObject({
    type: z.literal('result'),
    atMs: z.number(),
    outcome: z.discriminatedUnion('status', [
      z.strictObject({
        status: z.literal('success'),
        /** What each dump of an export has, in the order of the plan's. */
        dumpBytes: z.array(z.number().int().nonnegative()).max(16).optional(),
      }),
      z.strictObject({
        status: z.literal('failure'),
        stage: installStage,
        /** One of the public error codes; noded checks it. */
        code: z.string().max(64),
        message: z.string().max(4096),
        hint: z.string().max(1024).optional(),
      }),
    ]),
  }),
]);
export type InstallEvent = z.infer<typeof installEvent>;

/** Body of POST /ganeti/<v>/install/events. */
export const installEventBatch = z.array(installEvent).min(1).max(MAX_EVENTS_PER_BATCH);
