import { existsSync } from 'node:fs';
import type { Clock } from '#shared/clock/clock.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import { loadClusterKeys, type ClusterKeys } from '#shared/store/cluster-keys.ts';
import { openChosenStore } from '#shared/cluster/cluster-store.ts';
import { readEmbeddedStore, setAsideEmbeddedStore } from '#shared/store/embedded-store.ts';
import { openReplayGuard } from '#shared/store/replay-guard.ts';
import type { SealedStore } from '#shared/store/sealed-store.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { readStoreChoice, type StoreChoice } from '#shared/store/store-choice.ts';
import { describeStoreUrl, parseStoreUrl, type RedisServer } from '#shared/store/store-url.ts';
import type { Store } from '#shared/store/store.ts';

/** A store that all nodes of a cluster share. */
export interface CommonStore {
  readonly server: RedisServer;
  readonly sealed: SealedStore;
  readonly keys: ClusterKeys;
}

export interface OpenedStore {
  readonly store: Store;
  /** The place of the records in words, without a password. */
  readonly description: string;
  /** Null on a single-node cluster. */
  readonly common: CommonStore | null;
}

/**
 * Opens the store that `gnt-cluster init --store` chose for this root, or else the embedded one.
 * @throws AppError with the fault of the store
 */
export async function openStore(
  paths: RootPaths,
  clock: Clock,
  logger: Logger,
): Promise<OpenedStore> {
  const choice = await readStoreChoice(paths);
  if (choice === undefined) {
    const store = createSqliteStore({ path: paths.storeFile, clock });
    return { store, description: `sqlite ${paths.storeFile}`, common: null };
  }
  if (existsSync(paths.storeFile)) await finishReplacement(paths, choice, clock, logger);
  const keys = await loadClusterKeys(paths);
  const replayGuard = openReplayGuard({ path: paths.seenRecordsFile, clock, logger });
  const store = await openChosenStore(choice, () => keys.ring(), logger, replayGuard);
  return {
    store,
    description: describeStoreUrl(choice.url),
    common: { server: parseStoreUrl(choice.url), sealed: store, keys },
  };
}

/**
 * Sets aside an embedded store that `gnt-cluster init` or `join` had replaced when it was killed.
 * @throws AppError CONFLICT for a store that the choice does not name
 */
async function finishReplacement(
  paths: RootPaths,
  choice: StoreChoice,
  clock: Clock,
  logger: Logger,
): Promise<void> {
  const { cluster, instances } = readEmbeddedStore(paths.storeFile);
  if (cluster === choice.replaces && instances.length === 0) {
    logger.info('store.set-aside', { path: await setAsideEmbeddedStore(paths, clock) });
    return;
  }
  throw new AppError(
    'CONFLICT',
    `this root has two stores: ${paths.storeFile} and the one in ${paths.storeChoiceFile}`,
    { hint: `Keep one of them, for example: mv ${paths.storeFile} ${paths.storeFile}.unused` },
  );
}
