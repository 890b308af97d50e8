import { z } from 'zod';
import { MIB } from '../units/bytes.ts';
import { installStage, sha256Hex } from './primitives.ts';

/** Longest line that is kept of a script's output, in characters. */
export const MAX_LOG_LINE_LENGTH = 4096;
/** What the log of one installation holds; the agent sends no more of what scripts print. */
export const MAX_INSTALL_LOG_BYTES = 8 * MIB;
/**
 * Of a request for what is the agent's alone to read: `signPath` of the path, in hex.
 */
export const AGENT_PROOF_HEADER = 'x-gnt-agent-proof';
/** Events in one POST of install/events. */
export const MAX_EVENTS_PER_BATCH = 256;
/** Bytes of one POST of install/events; more is refused whole. */
export const MAX_EVENTS_BODY_BYTES = 256 * 1024;
/**
 * Of a signed event's text, in characters: the longest line, all of it escaped, and room for the
 * rest.
 */
const MAX_SIGNED_BODY_LENGTH = 48 * 1024;

/**
 * What the agent reports. `atMs` counts from the agent's kernel boot (CLOCK_BOOTTIME), since an
 * appliance's wall clock means nothing. The `result` event, signed, is the one and only proof of
 * success.
 */
export const installEvent = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('agent-started'),
    atMs: z.number(),
    /**
     * Kernel's uptime when the first user-space process ran, and when the agent's first line did.
     */
    userSpaceAtMs: z.number().nullable(),
    agentVersion: z.string().max(64),
    /**
     * Signs everything that this agent says from here on; none where it does not sign (an
     * installation medium's).
     */
    key: sha256Hex.optional(),
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

/**
 * An event with the proof that the agent said it: scripts are root in the appliance and reach
 * install/events as well. The first one of an installation is `agent-started` with the key that
 * signs it and all that follow.
 */
export const signedInstallEvent = z.strictObject({
  /** 1, 2, 3 … */
  sequence: z.number().int().positive(),
  /** An install event in JSON: the very characters that are signed. */
  body: z.string().max(MAX_SIGNED_BODY_LENGTH),
  /** HMAC-SHA-256, in hex, of the sequence number in decimal, a line feed and the body. */
  mac: sha256Hex,
});
export type SignedInstallEvent = z.infer<typeof signedInstallEvent>;

/**
 * What may be said at install/events. Only a signed event counts in an appliance; an installation
 * medium need not sign.
 */
export type InstallReport = SignedInstallEvent | InstallEvent;
/** By its `body`, so that a complaint names the wrong field and not the union. */
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
