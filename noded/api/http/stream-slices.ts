import { Readable } from 'node:stream';

/** Encodes slices as one JSON array. */
export async function* encodeArray<T>(slices: AsyncIterable<readonly T[]>): AsyncGenerator<string> {
  let before = '[';
  for await (const slice of slices) {
    if (slice.length === 0) continue;
    yield `${before}${slice.map((each) => JSON.stringify(each)).join(',')}`;
    before = ',';
  }
  yield before === '[' ? '[]' : ']';
}

/**
 * Returns a stream after its first item exists, so that an earlier failure can be sent as a
 * refusal. A destroyed stream ends the source even if it was never read: an async generator without
 * a first `next` would not.
 */
export async function streamBegun<T>(
  all: AsyncIterable<T>,
  encode: (all: AsyncIterable<T>) => AsyncGenerator<string>,
): Promise<Readable> {
  const rest = all[Symbol.asyncIterator]();
  const first = await rest.next();
  let isFirst = true;
  const next = async (): Promise<IteratorResult<T>> => {
    if (!isFirst) return rest.next();
    isFirst = false;
    return first;
  };
  const texts = encode({ [Symbol.asyncIterator]: () => ({ next }) });
  const end = async (): Promise<IteratorResult<string>> => {
    await rest.return?.();
    return texts.return(undefined);
  };
  return Readable.from({
    [Symbol.asyncIterator]: () => ({ next: () => texts.next(), return: end, throw: end }),
  });
}
