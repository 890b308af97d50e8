import type { Readable } from 'node:stream';

/**
 * Yields the chunks of a stream, with a limit on the sender's silence. Only the wait for a chunk
 * counts: the reader may take any time between chunks, for example to unpack 200,000 files.
 * @throws Error after `limitMs` without data; the stream is destroyed then
 */
export async function* limitSilence(source: Readable, limitMs: number): AsyncGenerator<Buffer> {
  // Without an encoding the chunks are Buffers.
  const chunks = (source as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const timer = setTimeout(
        () => source.destroy(new Error(`no data for ${limitMs / 1000} s`)),
        limitMs,
      );
      const next = await chunks.next().finally(() => clearTimeout(timer));
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    source.destroy();
  }
}
