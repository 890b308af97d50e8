import { randomUUID } from 'node:crypto';
import { clusterRecord, type ClusterRecord } from '../contract/api.ts';
import { DEFAULT_INSTALL_TIMEOUT_S } from '../contract/install-timeout.ts';
import { AppError, isAppError } from '../errors/app-error.ts';
import type { Logger } from '../log/log.ts';
import { StoreConflict } from '../store/store-conflict.ts';
import { createRedisStore } from '../store/redis-store.ts';
import { parseRecord } from '../store/readable-records.ts';
import type { ReplayGuard } from '../store/replay-guard.ts';
import { createSealedStore, type KeyRing, type SealedStore } from '../store/sealed-store.ts';
import type { StoreChoice } from '../store/store-choice.ts';
import { describeStoreUrl, parseStoreUrl } from '../store/store-url.ts';
import type { Store } from '../store/store.ts';

export const CLUSTER = 'cluster';

/**
 * Opens a Redis with sealed records. Checks the key against the cluster's record, if there is one.
 * @param replayGuard of this node; undefined for read-only use
 * @throws AppError HOST_PREREQUISITE when the server does not answer, STORE_KEY for the cluster of
 * another key
 */
export async function openSealedRedis(
  url: string,
  ring: () => KeyRing,
  logger: Logger,
  replayGuard?: ReplayGuard,
): Promise<{ readonly store: SealedStore; readonly cluster: ClusterRecord | undefined }> {
  const redis = await createRedisStore({ server: parseStoreUrl(url), logger });
  const store = createSealedStore(redis, ring, replayGuard);
  try {
    return { store, cluster: await findCluster(store) };
  } catch (error) {
    await store.close();
    if (!isAppError(error, 'STORE_KEY')) throw error;
    throw new AppError('STORE_KEY', `the cluster in ${describeStoreUrl(url)} has a different key`, {
      hint: 'Copy var/lib/gnt/cluster.key from a node of that cluster and give it with --cluster-key FILE',
      cause: error,
    });
  }
}

/** @throws AppError STORE_KEY; CONFLICT when the store has no cluster or a different one */
export async function openChosenStore(
  choice: StoreChoice,
  ring: () => KeyRing,
  logger: Logger,
  replayGuard: ReplayGuard,
): Promise<SealedStore> {
  const { store, cluster } = await openSealedRedis(choice.url, ring, logger, replayGuard);
  if (cluster?.uuid === choice.cluster) return store;
  await store.close();
  const found = cluster === undefined ? 'no cluster' : `cluster ${cluster.name} (${cluster.uuid})`;
  throw new AppError(
    'CONFLICT',
    `the store ${describeStoreUrl(choice.url)} has ${found}, but this node belongs to ${choice.cluster}`,
    {
      hint: 'Restore the data of the store. To form a new cluster, run gnt-cluster init on a node without instances of the old one.',
    },
  );
}

export async function findCluster(store: Store): Promise<ClusterRecord | undefined> {
  const stored = await store.get(CLUSTER, CLUSTER);
  return stored && parseRecord(clusterRecord, CLUSTER, stored);
}

export async function ensureCluster(
  store: Store,
  nowMs: number,
  name = 'gnt-cluster',
): Promise<ClusterRecord> {
  const value: ClusterRecord = {
    schema: 1,
    name,
    uuid: randomUUID(),
    createdAtMs: nowMs,
    installTimeoutS: DEFAULT_INSTALL_TIMEOUT_S,
    hostScripts: true,
    exposeServices: {},
  };
  try {
    await store.commit([{ collection: CLUSTER, id: CLUSTER, expected: 'absent', value }]);
    return value;
  } catch (error) {
    if (!(error instanceof StoreConflict)) throw error;
    const there = await store.get(CLUSTER, CLUSTER);
    return parseRecord(clusterRecord, CLUSTER, there ?? { id: CLUSTER, value: undefined });
  }
}
