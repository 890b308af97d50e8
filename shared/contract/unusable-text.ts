/** A part of a request that records, environments and file names cannot contain. */
export interface UnusablePart {
  readonly path: readonly (string | number)[];
  /** The end of a sentence; never contains the text itself. */
  readonly problem: string;
}

interface Place {
  readonly value: unknown;
  readonly key: string | number | null;
  readonly parent: Place | null;
}

/**
 * Returns the first unusable part of parsed JSON. A NUL character ends text in C programs. UTF-8
 * cannot encode half of a surrogate pair. zod silently drops the key `__proto__`. The walk does not
 * recurse, because JSON may be nested as deep as it is long.
 */
export function findUnusable(input: unknown): UnusablePart | undefined {
  const left: Place[] = [{ value: input, key: null, parent: null }];
  for (let place = left.pop(); place !== undefined; place = left.pop()) {
    const { value, key, parent } = place;
    const ofKey = typeof key === 'string' ? problemOfKey(key) : undefined;
    if (ofKey !== undefined) return { path: pathOf(parent), problem: `a name ${ofKey}` };
    const problem = problemOf(value);
    if (problem !== undefined) return { path: pathOf(place), problem };
    if (typeof value !== 'object' || value === null) continue;
    for (const name of Object.keys(value).reverse())
      left.push({
        value: Reflect.get(value, name),
        key: Array.isArray(value) ? Number(name) : name,
        parent: place,
      });
  }
  return undefined;
}

function problemOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  if (value.includes('\0')) return 'contains a NUL character';
  return value.isWellFormed() ? undefined : 'contains half of a surrogate pair';
}

function problemOfKey(key: string): string | undefined {
  return key === '__proto__' ? "must not be '__proto__'" : problemOf(key);
}

function pathOf(place: Place | null): readonly (string | number)[] {
  const path: (string | number)[] = [];
  for (let at = place; at?.key != null; at = at.parent) path.unshift(at.key);
  return path;
}
