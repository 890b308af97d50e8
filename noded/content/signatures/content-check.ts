import { createHash } from 'node:crypto';

export interface ContentCheck {
  write(chunk: Buffer): void | Promise<void>;
  /** @throws when the content fails the check */
  finish(): Promise<void>;
  /** Releases resources. Must be called. */
  close(): void;
}

/** Reads a whole content for all checks at once. @throws errors of checks and of the reader */
export async function readThrough(
  content: AsyncIterable<Buffer>,
  checks: readonly ContentCheck[],
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const chunk of content) {
      signal.throwIfAborted();
      for (const check of checks) await check.write(chunk);
    }
    signal.throwIfAborted();
    for (const check of checks) await check.finish();
  } finally {
    for (const check of checks) check.close();
  }
}

/** Passes the digest of the content on. @param accept throws for a wrong digest */
export function createDigestCheck(
  algorithm: 'sha256' | 'sha512' | 'blake2b512',
  accept: (digest: Buffer) => void,
): ContentCheck {
  const hash = createHash(algorithm);
  return {
    write: (chunk) => void hash.update(chunk),
    finish: async () => accept(hash.digest()),
    close: () => undefined,
  };
}
