/**
 * Stands in for the parts of a daemon while its tables of routes or metrics are read: whatever is
 * asked of it is itself. Nothing that it is given to is carried out.
 */
export function standIn<T>(): T {
  const any: object = new Proxy(() => undefined, {
    get: (_, key) => (key === Symbol.iterator ? () => [].values() : any),
    apply: () => any,
  });
  return any as T;
}
