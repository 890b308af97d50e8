/**
 * Limits of numbers that commands send outside of jobs. Commands read them before they load any
 * schema.
 */
export const MAX_PORT = 65_535;
/** Seconds: long enough to copy the token to the new node. */
export const MIN_JOIN_TOKEN_S = 10;
export const MAX_JOIN_TOKEN_S = 86_400;
/** Two weeks: longer than any verifier keeps a key set. */
export const MAX_KEY_OVERLAP_S = 14 * 86_400;
