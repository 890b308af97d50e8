import { every } from '#shared/clock/every.ts';
import type { Logger } from '#shared/log/log.ts';
import { CLUSTER } from '#shared/cluster/cluster-store.ts';
import type { Store } from '#shared/store/store.ts';
import { IDENTITY } from '../../records/identity-keys.ts';

export interface FollowClusterDependencies {
  readonly store: Pick<Store, 'watch'>;
  readonly services: { refresh(): Promise<void> };
  readonly identities: { hasChanged(): Promise<boolean> };
  readonly relays: { refresh(): Promise<void> };
  /** @returns false when some views could not be made, because the store did not answer */
  readonly keeper: { republishAll(): Promise<boolean> };
  readonly metad: { onRestarted(listener: () => Promise<void>): void };
  readonly logger: Logger;
}

/**
 * Nodes of the former release do not log their changes. A renewed identity key signs from some
 * moment on.
 */
const APPLY_AGAIN_MS = 60_000;

/**
 * Republishes views after a restart of metad, and applies cluster changes of other nodes. Retries
 * after failures of the store.
 * @returns a function that stops this
 */
export function followCluster({
  store,
  services,
  identities,
  relays,
  keeper,
  metad,
  logger,
}: FollowClusterDependencies): () => void {
  let isBehind = false;
  const republish = async (): Promise<void> => {
    isBehind = !(await keeper.republishAll());
  };
  metad.onRestarted(republish);
  const attempt = async (step: () => Promise<void>): Promise<void> => {
    try {
      await step();
    } catch (error) {
      logger.error('cluster.not-followed', { err: error });
    }
  };
  const apply = async (): Promise<void> => {
    // First, so that a revocation does not wait for ports of services, which may fail.
    await attempt(async () => {
      if ((await identities.hasChanged()) || isBehind) await republish();
    });
    await attempt(() => relays.refresh());
    await attempt(() => services.refresh());
  };
  const watches = [CLUSTER, IDENTITY].map((collection) =>
    store.watch(collection, () => void apply()),
  );
  const applying = every(APPLY_AGAIN_MS, apply);
  return () => {
    applying[Symbol.dispose]();
    for (const { end } of watches) end();
  };
}
