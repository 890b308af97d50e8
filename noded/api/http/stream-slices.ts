import { Readable } from 'node:stream';

/** An array of JSON, as its slices come. */
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
 * A stream whose first item is there: what keeps that from coming can still be told as a refusal.
 * What has begun is ended with the stream, of which nothing may have been read by then: a generator
 * that never began would end nothing.
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
