import { isAppError } from '../errors/app-error.ts';
import type { Store } from './store.ts';

/** Wraps a store. Calls `onAway` for each failure to answer. */
export function createNoticedStore(store: Store, onAway: () => void): Store {
  const noticed = async <T>(asking: Promise<T>): Promise<T> => {
    try {
      return await asking;
    } catch (error) {
      if (isAppError(error, 'STORE_UNAVAILABLE')) onAway();
      throw error;
    }
  };
  async function* noticedSlices<T>(slices: AsyncIterable<T>): AsyncGenerator<T> {
    try {
      yield* slices;
    } catch (error) {
      if (isAppError(error, 'STORE_UNAVAILABLE')) onAway();
      throw error;
    }
  }
  return {
    get: (collection, id) => noticed(store.get(collection, id)),
    getSome: (collection, ids) => noticed(store.getSome(collection, ids)),
    list: (collection) => noticed(store.list(collection)),
    scan: (collection) => noticedSlices(store.scan(collection)),
    ids: (collection) => noticed(store.ids(collection)),
    commit: (writes) => noticed(store.commit(writes)),
    watch: (collection, onChanges) => {
      const { caughtUp, end } = store.watch(collection, onChanges);
      return { caughtUp: () => noticed(caughtUp()), end };
    },
    ...(store.risks && { risks: store.risks.bind(store) }),
    close: () => store.close(),
  };
}
