export interface Named {
  readonly uuid: string;
  readonly name: string;
}

/** Changes before a forced merge: removed things must not stay in memory until the next list. */
const MAX_CHANGED = 1000;
/** Up to this number, things are inserted one by one, which is faster than a walk over all. */
const FEW = 64;

/**
 * Keeps many named things by id and sorted by name. Changes and lists neither sort all things nor
 * walk over them for a few changes: with tens of thousands, that would block the event loop for too
 * long.
 *
 * INVARIANT: each present thing is in one run, as it is now or as its former value in `#changed`.
 */
export class NamedOrder<T extends Named> {
  readonly #byId = new Map<string, T>();
  /** Sorted runs; each has at most half the length of the previous one. */
  readonly #runs: (readonly T[])[] = [];
  /** Former values, which are still in their runs. */
  readonly #changed = new Map<string, T>();

  /** Adds things, or replaces things with the same id. */
  add(some: readonly T[]): void {
    const fresh = new Map<string, T>();
    for (const each of some) {
      const { uuid } = each;
      const before = this.#byId.get(uuid);
      this.#byId.set(uuid, each);
      if (this.#changed.has(uuid)) continue;
      // A thing that is given twice must not be in two runs.
      if (before === undefined || fresh.has(uuid)) fresh.set(uuid, each);
      else this.#changed.set(uuid, before);
    }
    this.#push([...fresh.values()].sort(byName));
    if (this.#changed.size > MAX_CHANGED) this.list();
  }

  delete(uuid: string): void {
    const before = this.#byId.get(uuid);
    if (before === undefined) return;
    this.#byId.delete(uuid);
    if (!this.#changed.has(uuid)) this.#changed.set(uuid, before);
    if (this.#changed.size > MAX_CHANGED) this.list();
  }

  /** Returns an array that later changes do not modify. */
  list(): readonly T[] {
    let all: readonly T[] = [];
    for (const run of this.#runs.toReversed()) all = merge(run, all);
    if (this.#changed.size > 0) {
      const changed = [...this.#changed.keys()].flatMap((uuid) => this.#byId.get(uuid) ?? []);
      all = merge(without(all, this.#changed), changed.sort(byName));
      this.#changed.clear();
    }
    this.#runs.splice(0, Infinity, all);
    return all;
  }

  #push(sorted: readonly T[]): void {
    let run = sorted;
    for (let last = this.#runs.at(-1); last && last.length < 2 * run.length;) {
      this.#runs.pop();
      run = merge(last, run);
      last = this.#runs.at(-1);
    }
    if (run.length > 0) this.#runs.push(run);
  }
}

/** Compares code units, not by a locale, so that all nodes sort alike. */
function byName(a: Named, b: Named): number {
  return a.name < b.name ? -1 : 1;
}

/** Returns the index of the first thing that does not sort before this name. */
function placeOf(sorted: readonly Named[], name: string): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((sorted[middle]?.name ?? '') < name) from = middle + 1;
    else to = middle;
  }
  return from;
}

function without<T extends Named>(
  sorted: readonly T[],
  gone: ReadonlyMap<string, T>,
): readonly T[] {
  if (gone.size > FEW) return sorted.filter(({ uuid }) => !gone.has(uuid));
  const kept = [...sorted];
  for (const { uuid, name } of gone.values()) {
    let at = placeOf(kept, name);
    // Several things may have the same name for a moment.
    while (kept[at] !== undefined && kept[at]?.uuid !== uuid) at += 1;
    kept.splice(at, 1);
  }
  return kept;
}

function merge<T extends Named>(some: readonly T[], others: readonly T[]): readonly T[] {
  if (some.length === 0) return others;
  if (others.length === 0) return some;
  if (others.length <= FEW && others.length * FEW < some.length) return putInto([...some], others);
  const merged: T[] = [];
  let at = 0;
  for (const other of others) {
    for (let one = some[at]; one !== undefined && one.name < other.name; one = some[at]) {
      merged.push(one);
      at += 1;
    }
    merged.push(other);
  }
  for (const one of some.slice(at)) merged.push(one);
  return merged;
}

function putInto<T extends Named>(sorted: T[], few: readonly T[]): readonly T[] {
  for (const one of few) sorted.splice(placeOf(sorted, one.name), 0, one);
  return sorted;
}
