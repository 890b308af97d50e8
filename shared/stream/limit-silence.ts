import type { Readable } from 'node:stream';

/**
 * The chunks of a stream whose sender may be silent for `limitMs` at most. Only the time is counted
 * in which a chunk is waited for: a reader may take as long as it wants with each, as the one who
 * unpacks 200,000 files does.
 * @throws Error when nothing came for that long; the stream is destroyed then
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
