import { isAppError } from '../errors/app-error.ts';
import type { Store } from './store.ts';

/** A store that says each time when the one below did not answer. */
export function createNoticedStore(store: Store, onAway: () => void): Store {
  const noticed = async <T>(asking: Promise<T>): Promise<T> => {
    try {
      return await asking;
    } catch (error) {
      if (isAppError(error, 'STORE_UNAVAILABLE')) onAway();
      throw error;
    }
  };
  return {
    get: (collection, id) => noticed(store.get(collection, id)),
    list: (collection) => noticed(store.list(collection)),
    commit: (writes) => noticed(store.commit(writes)),
    ...(store.watch && { watch: store.watch.bind(store) }),
    ...(store.risks && { risks: store.risks.bind(store) }),
    close: () => store.close(),
  };
}
