import { isDeepStrictEqual } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAppError } from '../errors/app-error.ts';
import { StoreConflict } from './store-conflict.ts';
import type { Store, StoredRecord, Write } from './store.ts';

const ASK_AGAIN_MS = 500;

/**
 * Wraps a store for work that was accepted: while the store does not answer, requests wait until
 * the signal aborts. A commit whose answer was lost is repeated. It counts as done if the records
 * that it expected to be `absent`, or at a revision, have its values; others may have overwritten
 * the rest.
 *
 * A commit should therefore expect `absent` or a revision of at least one record: a repeated commit
 * of only `any` overwrites later writes of others.
 */
export function createPatientStore(store: Store, signal: AbortSignal): Store {
  const insist = async <T>(ask: (isRepeated: boolean) => Promise<T>): Promise<T> => {
    for (let isRepeated = false; ; isRepeated = true) {
      try {
        return await ask(isRepeated);
      } catch (error) {
        if (!isAppError(error, 'STORE_UNAVAILABLE') || signal.aborted) throw error;
        // An aborted wait reports the store's own error.
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
    // An interrupted scan starts again: the reader gets records repeatedly.
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

/** Returns the revisions of a commit that was done; undefined otherwise. */
async function findWritten(
  store: Store,
  writes: readonly Write[],
): Promise<readonly number[] | undefined> {
  const found = await Promise.all(writes.map(({ collection, id }) => store.get(collection, id)));
  const isGuarded = writes.map(({ expected }) => expected !== 'any');
  // Others may have overwritten an `any` record, so it proves nothing.
  const isTelling = (index: number): boolean =>
    !isGuarded.includes(true) || isGuarded[index] === true;
  const isWritten = writes.every(
    ({ value }, index) => !isTelling(index) || isSame(value, found[index]),
  );
  return isWritten ? found.map((record) => record?.revision ?? 0) : undefined;
}

function isSame(written: unknown, found: StoredRecord | undefined): boolean {
  if (written === undefined || found === undefined) return written === undefined && !found;
  // Compare values as read: JSON has no `undefined`.
  return isDeepStrictEqual(JSON.parse(JSON.stringify(written)), found.value);
}
