/**
 * Time a guest may take to acknowledge a byte or a keepalive probe. By Linux' defaults the
 * connections of a guest that crashed or lost its device would stay for two hours, or for a quarter
 * of an hour with an unfinished answer. A live guest that reads nothing of an answer for this long
 * loses the connection too.
 */
export const UNACKNOWLEDGED_MS = 120_000;

export const ACCEPT_OPTIONS = {
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: 30_000,
} as const;
