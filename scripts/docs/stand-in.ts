/**
 * Stands in for parts of a daemon while its tables of routes or metrics are read. Every member and
 * every result is the stand-in itself.
 */
export function standIn<T>(): T {
  const any: object = new Proxy(() => undefined, {
    get: (_, key) => (key === Symbol.iterator ? () => [].values() : any),
    apply: () => any,
  });
  return any as T;
}
