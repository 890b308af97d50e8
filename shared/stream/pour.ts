import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { spendBuffer } from './spend-buffer.ts';

/**
 * Writes chunks that have no other user, at the pace of the stream, and ends it. Destroys it when
 * the source fails. The memory of a chunk is released once it is written.
 */
export async function pour(chunks: AsyncIterable<Buffer>, to: Writable): Promise<void> {
  const closed = new AbortController();
  to.on('close', () => closed.abort());
  try {
    for await (const chunk of chunks) {
      // A write to a destroyed stream would be an unreported error.
      if (to.destroyed) return;
      const isRoom = to.write(chunk, () => spendBuffer(chunk));
      if (!isRoom) await once(to, 'drain', { signal: closed.signal });
    }
    to.end();
  } catch {
    to.destroy();
  }
}
