import { z } from 'zod';

/** Base64 of a queue of 1 MiB is shorter. */
const MAX_QUEUE_CHARACTERS = 2 * 1024 * 1024;
/**
 * Bounds of the hidden inputs of a guest, which accumulate across nodes. One input is as long as a
 * value may be.
 */
const MAX_HIDDEN_INPUTS = 16_384;
const MAX_HIDDEN_CHARACTERS = 65_536;
/** Above the connections that a host reports. */
const MAX_CONNECTIONS = 65_536;
const port = z.number().int().min(1).max(65_535);

const queueState = z.object({
  /** Offset of the first waiting byte. */
  firstOffset: z.number().int().nonnegative(),
  /** Waiting bytes, base64. */
  bytes: z.string().max(MAX_QUEUE_CHARACTERS),
});
export type QueueState = z.infer<typeof queueState>;

/** A guest's connection to the metadata address. It ends when the guest migrates. */
export const guestConnection = z.object({
  port,
  guestPort: port,
  /** Null for the guest's own IPv4 address. */
  guestIpv6: z.ipv6().nullable(),
});
export type GuestConnection = z.infer<typeof guestConnection>;

/**
 * State of a guest in gnt-metad besides the view and its secrets. It travels sealed from the memory
 * of one metad to another and is never written to disk.
 */
export const guestState = z.object({
  /** State of another installation is ignored. */
  instanceId: z.string().max(256),
  /** Key of the session tokens, base64, and the clock of their lifetimes. */
  tokens: z.object({ key: z.base64().max(64), nowMs: z.number() }).nullable(),
  /** The password that the guest posted to OpenStack's path. */
  password: z.string().max(65_536),
  toGuest: queueState,
  toHost: queueState,
  /** Inputs of commands that must not appear in the guest's output. */
  hiddenInputs: z.array(z.string().max(MAX_HIDDEN_CHARACTERS)).max(MAX_HIDDEN_INPUTS).default([]),
});
export type GuestState = z.infer<typeof guestState>;

/** The state for the target node, with the connections that end at the source. */
export const guestHandover = guestState.extend({
  connections: z.array(guestConnection).max(MAX_CONNECTIONS),
});
export type GuestHandover = GuestState & {
  readonly connections: readonly GuestConnection[];
};
