/** A part of a request that no record, environment or file name can hold. */
export interface UnusablePart {
  readonly path: readonly (string | number)[];
  /** The end of a sentence; never with the text itself. */
  readonly problem: string;
}

interface Place {
  readonly value: unknown;
  readonly key: string | number | null;
  readonly parent: Place | null;
}

/**
 * Returns the first part of parsed JSON that is refused wherever it stands: text with a NUL
 * character, which ends text in C programs, or with half of a surrogate pair, which UTF-8 cannot
 * encode; and the key `__proto__`, which zod drops in silence. JSON may be nested as deep as it is
 * long, so the walk does not recurse.
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
