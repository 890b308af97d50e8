import { createHash } from 'node:crypto';

/** Something that has to be true of a content, found out while it is read once. */
export interface ContentCheck {
  write(chunk: Buffer): void | Promise<void>;
  /** @throws what the content is not */
  finish(): Promise<void>;
  /** Has to be called when nobody asks any more. */
  close(): void;
}

/** Reads a content whole, for all checks at once. @throws what a check throws, or the reader */
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

/** Hands on the digest of what was read. @param accept throws when it is not the right one */
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
