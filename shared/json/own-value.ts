/**
 * Returns the own value of a table under a key, or undefined. Plain `table[key]` also finds
 * inherited members: `constructor` is a valid name of a host, an input and an OS parameter.
 */
export function ownValue<T>(table: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

/** Sets a value of a table, also under `__proto__`, which plain assignment loses. */
export function setOwn<T>(table: Record<string, T>, key: string, value: NoInfer<T>): void {
  Object.defineProperty(table, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}
