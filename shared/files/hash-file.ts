import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { MIB } from '../units/bytes.ts';

/**
 * Returns the SHA-256 of a file in hex. Reads the next piece while it hashes the present one; a
 * stream does not overlap these, and takes half as long again.
 * @throws system errors, and the signal's reason
 */
export async function hashFile(path: string, signal?: AbortSignal): Promise<string> {
  await using file = await open(path, 'r');
  const hash = createHash('sha256');
  let [reading, other] = [Buffer.allocUnsafe(MIB), Buffer.allocUnsafe(MIB)];
  let next = file.read(reading, 0, MIB, null);
  for (;;) {
    const { bytesRead, buffer } = await next;
    if (bytesRead === 0) return hash.digest('hex');
    [reading, other] = [other, reading];
    next = file.read(reading, 0, MIB, null);
    hash.update(buffer.subarray(0, bytesRead));
    if (signal?.aborted === true) {
      await next;
      signal.throwIfAborted();
    }
  }
}
