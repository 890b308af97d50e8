import type { KeyStep } from '#shared/contract/api.ts';
import type { ClusterKeys } from '#shared/store/cluster-keys.ts';
import type { SealedStore } from '#shared/store/sealed-store.ts';

/** Takes one step on this node. Idempotent. @throws AppError CONFLICT */
export async function takeKeyStep(
  step: KeyStep,
  keys: ClusterKeys,
  store: Pick<SealedStore, 'settle'>,
): Promise<void> {
  switch (step.step) {
    case 'learn':
      return keys.learn(Buffer.from(step.key, 'base64'));
    case 'seal':
      await keys.sealWith(Buffer.from(step.key, 'base64'));
      return store.settle();
    case 'forget':
      return keys.forgetOthers(step.fingerprint);
  }
}
