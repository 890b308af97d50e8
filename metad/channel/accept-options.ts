/**
 * Of each connection that a guest makes. One that is silent, and whose guest went without a word,
 * since it crashed or its device was taken away, is known for dead after this and ten probes, a
 * second apart: by itself Linux asks after two hours, and what waits for a change would hold its
 * place until then. An answer that the guest has not taken yet is sent again for as long as Linux
 * does (`tcp_retries2`, a quarter of an hour).
 */
export const ACCEPT_OPTIONS = {
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: 30_000,
} as const;
