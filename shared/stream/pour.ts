import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { spendBuffer } from './spend-buffer.ts';

/**
 * Writes chunks that nobody else needs, as fast as they are taken, and ends the stream; one that
 * cannot be written whole is destroyed. The memory of a chunk is gone as soon as it is written.
 */
export async function pour(chunks: AsyncIterable<Buffer>, to: Writable): Promise<void> {
  const closed = new AbortController();
  to.on('close', () => closed.abort());
  try {
    for await (const chunk of chunks) {
      // A write would be an error that nobody hears.
      if (to.destroyed) return;
      const isRoom = to.write(chunk, () => spendBuffer(chunk));
      if (!isRoom) await once(to, 'drain', { signal: closed.signal });
    }
    to.end();
  } catch {
    to.destroy();
  }
}
