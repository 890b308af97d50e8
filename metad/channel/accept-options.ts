/**
 * How long a guest may take to acknowledge a byte or a keepalive probe. One that went without a
 * word, since it crashed or its device was taken away, would keep its waiting connections for two
 * hours by Linux' own rules, and those with an unfinished answer for a quarter of an hour. A guest
 * that lives but reads nothing of an answer for so long loses that connection, too.
 */
export const UNACKNOWLEDGED_MS = 120_000;

/** Options of each connection that a guest makes. */
export const ACCEPT_OPTIONS = {
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: 30_000,
} as const;
