/** What an order by names needs to know of each. */
export interface Named {
  readonly uuid: string;
  readonly name: string;
}

/** Changes that wait for a question at most: what was removed is not to be kept for ever. */
const MAX_CHANGED = 1000;
/** This few are put into their places one by one; a walk over all takes longer. */
const FEW = 64;

/**
 * Many named things by their ids, and in the order of their names. Neither a change nor a question
 * sorts all of them, or looks at all of them for the sake of a few: of tens of thousands that takes
 * longer than anybody else may be kept waiting.
 *
 * INVARIANT: each thing that is there is in one run, as it is, or as it is in `#changed`.
 */
export class NamedOrder<T extends Named> {
  readonly #byId = new Map<string, T>();
  /** What was sorted already, in runs that become half as long from one to the next. */
  readonly #runs: (readonly T[])[] = [];
  /** What those are now that their run still has as they were. */
  readonly #changed = new Map<string, T>();

  /** Takes some that come together; of one that was there, what it is now. */
  add(some: readonly T[]): void {
    const fresh = new Map<string, T>();
    for (const each of some) {
      const { uuid } = each;
      const before = this.#byId.get(uuid);
      this.#byId.set(uuid, each);
      if (this.#changed.has(uuid)) continue;
      // One that comes twice is in no run twice.
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

  /** An array that no later change touches. */
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

/** Compares code units: no language's order, so that all nodes have the same. */
function byName(a: Named, b: Named): number {
  return a.name < b.name ? -1 : 1;
}

/** The index of the first whose name is not before this one. */
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
    // Several may have one name for a moment.
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
