import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store } from '#shared/store/store.ts';

/**
 * Removes what records may name. Whoever comes to name it writes it again (`planNamed`), so that
 * what came after the look at its users is seen by another look.
 * @param refuseUsed throws where somebody names it
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
