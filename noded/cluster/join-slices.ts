/** What several tell at the same time, as it comes. */
export async function* joinSlices<T>(sources: readonly AsyncGenerator<T>[]): AsyncGenerator<T> {
  const waiting = new Map(sources.map((source) => [source, nextOf(source)]));
  try {
    while (waiting.size > 0) {
      const { source, next } = await Promise.race(waiting.values());
      waiting.delete(source);
      if (next.done === true) continue;
      waiting.set(source, nextOf(source));
      yield next.value;
    }
  } finally {
    for (const source of waiting.keys()) void source.return(undefined).catch(() => undefined);
  }
}

interface Told<T> {
  readonly source: AsyncGenerator<T>;
  readonly next: IteratorResult<T>;
}

function nextOf<T>(source: AsyncGenerator<T>): Promise<Told<T>> {
  const asked = source.next().then((next) => ({ source, next }));
  // It may fail while the reader is busy with what another told, and nobody awaits it yet.
  asked.catch(() => undefined);
  return asked;
}
