import type { Clock } from '#shared/clock/clock.ts';
import { othersTurn } from '#shared/clock/turns.ts';
import type { ListedRecord, Store, Watch } from '#shared/store/store.ts';

/** A write that bypasses this program is not in the store's log. It shows after this time. */
const MAX_AGE_MS = 3_600_000;

export interface CachedListDependencies<T> {
  readonly store: Pick<Store, 'list' | 'watch'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly collection: string;
  /** @throws AppError RECORD_UNREADABLE */
  readonly parse: (stored: ListedRecord) => T;
}

/**
 * Returns a reader of a whole collection that reads it again only after a change. The reader's
 * list has every change that was committed before the call, and is the same array until the next
 * change. The store's log is watched from the first call until the store closes.
 */
export function createCachedList<T>({
  store,
  clock,
  collection,
  parse,
}: CachedListDependencies<T>): () => Promise<readonly T[]> {
  let watch: Watch | undefined;
  let changes = 0;
  let cached: { readonly changes: number; readonly atMs: number; readonly list: readonly T[] } = {
    ...{ changes: -1, atMs: 0, list: [] },
  };
  return async () => {
    watch ??= store.watch(collection, () => void (changes += 1));
    await watch.caughtUp();
    const age = clock.now() - cached.atMs;
    if (cached.changes === changes && age >= 0 && age < MAX_AGE_MS) return cached.list;
    // A change during the reading may be missing in the list, which is read again then.
    const before = changes;
    const list: T[] = [];
    for (const stored of await store.list(collection)) {
      list.push(parse(stored));
      await othersTurn();
    }
    cached = { changes: before, atMs: clock.now(), list };
    return list;
  };
}
