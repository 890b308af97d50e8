import { existsSync } from 'node:fs';
import type { Clock } from '#shared/clock/clock.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import { openChosenStore } from '#shared/store/cluster-store.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { readClusterKey, readStoreChoice } from '#shared/store/store-choice.ts';
import { describeStoreUrl, parseStoreUrl, type RedisServer } from '#shared/store/store-url.ts';
import type { Store } from '#shared/store/store.ts';

export interface OpenedStore {
  readonly store: Store;
  /** Where the records are, in words for people; never with a password. */
  readonly description: string;
  /** Where the nodes of the cluster meet; null for a node that is a cluster by itself. */
  readonly common: RedisServer | null;
}

/**
 * The store that `gnt-cluster init --store` chose for this root, or else the embedded one.
 * @throws AppError what is wrong with either
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
  if (existsSync(paths.storeFile)) {
    throw new AppError(
      'CONFLICT',
      `there are two stores: ${paths.storeFile} and that of ${paths.storeChoiceFile}`,
      { hint: 'move away the one that is not wanted' },
    );
  }
  const key = await readClusterKey(paths.clusterKeyFile);
  if (key === undefined) {
    throw new AppError('STORE_KEY', `there is no ${paths.clusterKeyFile}`, {
      hint: 'copy it from another node of the cluster, for root only',
    });
  }
  return {
    store: await openChosenStore(choice, key, logger),
    description: describeStoreUrl(choice.url),
    common: parseStoreUrl(choice.url),
  };
}
