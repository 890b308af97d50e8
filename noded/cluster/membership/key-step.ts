import { z } from 'zod';
import type { ClusterKeys } from '#shared/store/cluster-keys.ts';
import { CLUSTER_KEY_BYTES, type SealedStore } from '#shared/store/sealed-store.ts';

const key = z
  .base64()
  .refine((text) => Buffer.from(text, 'base64').length === CLUSTER_KEY_BYTES, 'not a key');

/** What a node that renews the cluster's key has each other one do, in the stream between them. */
export const keyStep = z.discriminatedUnion('step', [
  z.strictObject({ step: z.literal('learn'), key }),
  z.strictObject({ step: z.literal('seal'), key }),
  z.strictObject({ step: z.literal('forget'), fingerprint: z.string().regex(/^[0-9a-f]{64}$/) }),
]);
export type KeyStep = z.infer<typeof keyStep>;

/** Takes one step on this node; it may be repeated. @throws AppError CONFLICT */
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
