import { every } from '#shared/clock/every.ts';
import type { Logger } from '#shared/log/log.ts';
import { CLUSTER } from '#shared/cluster/cluster-store.ts';
import type { Store } from '#shared/store/store.ts';
import { IDENTITY } from '../../records/identity-keys.ts';

export interface FollowClusterDependencies {
  readonly store: Pick<Store, 'watch'>;
  readonly services: { refresh(): Promise<void> };
  readonly identities: { hasChanged(): Promise<boolean> };
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
  keeper,
  metad,
  logger,
}: FollowClusterDependencies): () => void {
  let isBehind = false;
  const republish = async (): Promise<void> => {
    isBehind = !(await keeper.republishAll());
  };
  metad.onRestarted(republish);
  const apply = async (): Promise<void> => {
    try {
      await services.refresh();
      if ((await identities.hasChanged()) || isBehind) await republish();
    } catch (error) {
      logger.error('cluster.not-followed', { err: error });
    }
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
