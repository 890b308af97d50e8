import { z } from 'zod';

/** More than a queue of 1 MiB has, in base64. */
const MAX_QUEUE_CHARACTERS = 2 * 1024 * 1024;
/**
 * Of the commands that a guest was given last, on however many nodes; each as long as a value may
 * be.
 */
const MAX_HIDDEN_INPUTS = 16_384;
const MAX_HIDDEN_CHARACTERS = 65_536;
/** More than a host tells. */
const MAX_CONNECTIONS = 65_536;
const port = z.number().int().min(1).max(65_535);

const queueState = z.object({
  /** Number of the first byte that waits. */
  firstOffset: z.number().int().nonnegative(),
  /** What waits, base64. */
  bytes: z.string().max(MAX_QUEUE_CHARACTERS),
});
export type QueueState = z.infer<typeof queueState>;

/** A connection that a guest has to the service's address, which ends where the guest leaves. */
export const guestConnection = z.object({
  port,
  guestPort: port,
  /** Null for the guest's own IPv4 address. */
  guestIpv6: z.ipv6().nullable(),
});
export type GuestConnection = z.infer<typeof guestConnection>;

/**
 * What a guest and its host have with metad beside the view and its secrets. It goes from one
 * metad's memory into another's, sealed on its way, and is written down nowhere.
 */
export const guestState = z.object({
  /** Whose it is: what is of another installation counts for nothing. */
  instanceId: z.string().max(256),
  /** Session tokens: their key, base64, and what the clock is that they count by. */
  tokens: z.object({ key: z.base64().max(64), nowMs: z.number() }).nullable(),
  /** What was posted where OpenStack's guests post it. */
  password: z.string().max(65_536),
  toGuest: queueState,
  toHost: queueState,
  /** What was given with commands, which no output of the guest may show. */
  hiddenInputs: z.array(z.string().max(MAX_HIDDEN_CHARACTERS)).max(MAX_HIDDEN_INPUTS).default([]),
});
export type GuestState = z.infer<typeof guestState>;

/** What goes to the other node: with the connections that end there. */
export const guestHandover = guestState.extend({
  connections: z.array(guestConnection).max(MAX_CONNECTIONS),
});
export type GuestHandover = GuestState & {
  readonly connections: readonly GuestConnection[];
};
