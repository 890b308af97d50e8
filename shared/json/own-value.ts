/**
 * Returns what a table has under a key, undefined where it has nothing. Plain `table[key]` also
 * finds what every object inherits: `constructor` is a valid name of a host, an input and an OS
 * parameter.
 */
export function ownValue<T>(table: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

/** Puts a value into a table, under `__proto__` too, which plain assignment loses. */
export function setOwn<T>(table: Record<string, T>, key: string, value: NoInfer<T>): void {
  Object.defineProperty(table, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}
