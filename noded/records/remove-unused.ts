import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store } from '#shared/store/store.ts';

/**
 * Removes an object that records may name. A record that newly names it writes it again
 * (`planNamed`). The removal then conflicts and checks its users again.
 * @param refuseUsed throws if the object has a user
 */
export async function removeUnused(
  store: Store,
  { collection, id }: { readonly collection: string; readonly id: string },
  refuseUsed: () => Promise<void>,
): Promise<void> {
  for (;;) {
    const stored = await store.get(collection, id);
    if (stored === undefined) return;
    await refuseUsed();
    try {
      await store.commit([{ collection, id, expected: stored.revision, value: undefined }]);
      return;
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error;
    }
  }
}
