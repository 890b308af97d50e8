import { isDeepStrictEqual } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAppError } from '../errors/app-error.ts';
import { StoreConflict } from './store-conflict.ts';
import type { Store, StoredRecord, Write } from './store.ts';

const ASK_AGAIN_MS = 500;

/**
 * A store for work that was accepted: while the one below does not answer, it waits instead of
 * failing, until the signal is aborted. A commit whose answer was lost is asked for again, and
 * counts as done where what it was to write is there: what it expected to be `absent`, or to have a
 * revision, for others may have written over the rest.
 *
 * So a commit should expect a revision, or `absent`, of at least one of its records: a second `any`
 * would overwrite what others wrote meanwhile.
 */
export function createPatientStore(store: Store, signal: AbortSignal): Store {
  const insist = async <T>(ask: (isRepeated: boolean) => Promise<T>): Promise<T> => {
    for (let isRepeated = false; ; isRepeated = true) {
      try {
        return await ask(isRepeated);
      } catch (error) {
        if (!isAppError(error, 'STORE_UNAVAILABLE') || signal.aborted) throw error;
        // What is told when the wait is ended is the store's own error.
        await sleep(ASK_AGAIN_MS, undefined, { signal }).catch(() => Promise.reject(error));
      }
    }
  };
  async function* insistSlices<T>(scan: () => AsyncIterable<T>): AsyncGenerator<T> {
    for (;;) {
      try {
        yield* scan();
        return;
      } catch (error) {
        if (!isAppError(error, 'STORE_UNAVAILABLE') || signal.aborted) throw error;
        await sleep(ASK_AGAIN_MS, undefined, { signal }).catch(() => Promise.reject(error));
      }
    }
  }
  return {
    get: (collection, id) => insist(() => store.get(collection, id)),
    getSome: (collection, ids) => insist(() => store.getSome(collection, ids)),
    list: (collection) => insist(() => store.list(collection)),
    // A scan that broke off begins anew: what a reader has had comes again.
    scan: (collection) => insistSlices(() => store.scan(collection)),
    ids: (collection) => insist(() => store.ids(collection)),
    commit: (writes) =>
      insist(async (isRepeated) => {
        try {
          return await store.commit(writes);
        } catch (error) {
          if (!isRepeated || !(error instanceof StoreConflict)) throw error;
          const revisions = await findWritten(store, writes);
          if (revisions === undefined) throw error;
          return revisions;
        }
      }),
    watch: (collection, onChanges) => store.watch(collection, onChanges),
    close: () => store.close(),
  };
}

/** The revisions of a commit that was done; undefined when it was not. */
async function findWritten(
  store: Store,
  writes: readonly Write[],
): Promise<readonly number[] | undefined> {
  const found = await Promise.all(writes.map(({ collection, id }) => store.get(collection, id)));
  const isGuarded = writes.map(({ expected }) => expected !== 'any');
  // What anybody may write over was written over, perhaps: it tells nothing of this commit.
  const isTelling = (index: number): boolean =>
    !isGuarded.includes(true) || isGuarded[index] === true;
  const isWritten = writes.every(
    ({ value }, index) => !isTelling(index) || isSame(value, found[index]),
  );
  return isWritten ? found.map((record) => record?.revision ?? 0) : undefined;
}

function isSame(written: unknown, found: StoredRecord | undefined): boolean {
  if (written === undefined || found === undefined) return written === undefined && !found;
  // It is compared as it comes back: JSON has no `undefined`.
  return isDeepStrictEqual(JSON.parse(JSON.stringify(written)), found.value);
}
