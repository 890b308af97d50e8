import type { Logger } from '#shared/log/log.ts';
import { CLUSTER } from '#shared/store/cluster-store.ts';
import type { Store } from '#shared/store/store.ts';

export interface FollowClusterDependencies {
  readonly store: Pick<Store, 'watch'>;
  readonly services: { refresh(): Promise<void> };
  /** @returns false when some could not be made, since the store did not answer */
  readonly keeper: { republishAll(): Promise<boolean> };
  readonly metad: { onRestarted(listener: () => Promise<void>): void };
  readonly logger: Logger;
}

/** Nodes of the former release tell nobody in the log of changes what they change. */
const APPLY_AGAIN_MS = 60_000;

/**
 * Shows guests again what they may see when metad was restarted, and applies what other nodes
 * change of the cluster; what the store was not there for is done when it is back.
 * @returns ends it
 */
export function followCluster({
  store,
  services,
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
      if (isBehind) await republish();
    } catch (error) {
      logger.error('cluster.not-followed', { err: error });
    }
  };
  const { end } = store.watch(CLUSTER, () => void apply());
  const timer = setInterval(() => void apply(), APPLY_AGAIN_MS).unref();
  return () => {
    clearInterval(timer);
    end();
  };
}
