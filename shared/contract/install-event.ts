import { z } from 'zod';
import { MIB } from '../units/bytes.ts';
import { installStage, sha256Hex } from './primitives.ts';

/** Characters of a line of script output. */
export const MAX_LOG_LINE_LENGTH = 4096;
/** Bytes of the log of one installation. The agent sends no more script output than that. */
export const MAX_INSTALL_LOG_BYTES = 8 * MIB;
/** Header of requests that only the agent may make: `signPath` of the path, in hex. */
export const AGENT_PROOF_HEADER = 'x-gnt-agent-proof';
/** Events in one POST of install/events. */
export const MAX_EVENTS_PER_BATCH = 256;
/** Bytes of one POST of install/events. Larger bodies are refused. */
export const MAX_EVENTS_BODY_BYTES = 256 * 1024;
/** Characters of a signed event: the longest line, fully escaped, and the other fields. */
const MAX_SIGNED_BODY_LENGTH = 48 * 1024;

/**
 * Reports of the agent. `atMs` counts from the agent's kernel boot (CLOCK_BOOTTIME), because the
 * appliance's wall clock is not set. Only the signed `result` event proves success.
 */
export const installEvent = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('agent-started'),
    atMs: z.number(),
    /** Kernel uptime at the first user-space process and at the agent's first line. */
    userSpaceAtMs: z.number().nullable(),
    agentVersion: z.string().max(64),
    /**
     * Key of all following signatures; absent if the agent does not sign (an installation medium).
     */
    key: sha256Hex.optional(),
  }),
  z.strictObject({ type: z.literal('stage-started'), atMs: z.number(), stage: installStage }),
  z.strictObject({
    type: z.literal('stage-finished'),
    atMs: z.number(),
    stage: installStage,
    /** A sentence for the operator: the result of the stage. */
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
        /** Bytes of each dump of an export, in the order of the plan. */
        dumpBytes: z.array(z.number().int().nonnegative()).max(16).optional(),
      }),
      z.strictObject({
        status: z.literal('failure'),
        stage: installStage,
        /** A public error code; noded checks it. */
        code: z.string().max(64),
        message: z.string().max(4096),
        hint: z.string().max(1024).optional(),
      }),
    ]),
  }),
]);
export type InstallEvent = z.infer<typeof installEvent>;

/**
 * An event with a signature of the agent, because scripts run as root in the appliance and can post
 * to install/events too. The first event is `agent-started` with the key of all signatures.
 */
export const signedInstallEvent = z.strictObject({
  /** 1, 2, 3 … */
  sequence: z.number().int().positive(),
  /** An install event in JSON: exactly the signed characters. */
  body: z.string().max(MAX_SIGNED_BODY_LENGTH),
  /** HMAC-SHA-256, in hex, of the sequence number in decimal, a line feed and the body. */
  mac: sha256Hex,
});
export type SignedInstallEvent = z.infer<typeof signedInstallEvent>;

/**
 * Accepted at install/events. From an appliance only signed events count; an installation medium
 * need not sign.
 */
export type InstallReport = SignedInstallEvent | InstallEvent;
/** Chooses the schema by `body`, so that an error names the field instead of the union. */
export const installReport = z.unknown().transform((value, context): InstallReport => {
  const isSigned = typeof value === 'object' && value !== null && 'body' in value;
  const parsed = (isSigned ? signedInstallEvent : installEvent).safeParse(value);
  if (parsed.success) return parsed.data;
  for (const { path, message } of parsed.error.issues)
    context.addIssue({ code: 'custom', path: [...path], message });
  return z.NEVER;
});

/** Body of POST /ganeti/<v>/install/events. */
export const installEventBatch = z.array(installReport).min(1).max(MAX_EVENTS_PER_BATCH);
