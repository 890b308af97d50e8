import type { Clock } from '#shared/clock/clock.ts';
import {
  clusterRecord,
  osSettings,
  type ClusterRecord,
  type OsSettings,
} from '#shared/contract/api.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import { CLUSTER, ensureCluster } from '#shared/cluster/cluster-store.ts';
import { parseRecord } from '#shared/store/readable-records.ts';
import type { Store, Write } from '#shared/store/store.ts';
import { createBootRepository, type BootRepository } from './boot-repository.ts';
import { createIdentityKeyRepository, type IdentityKeyRepository } from './identity-keys.ts';
import { createNetworkRepository, type NetworkRepository } from './network-repository.ts';
import { createProfileRepository, type ProfileRepository } from './profile-repository.ts';

const OS = 'os';

/**
 * Stores the cluster's record, the administrator's settings of OS definitions, profiles, boot
 * content, networks and identity keys.
 */
export interface ClusterRepository
  extends ProfileRepository, BootRepository, NetworkRepository, IdentityKeyRepository {
  /** Creates the record if it is missing. */
  ensure(): Promise<ClusterRecord>;
  load(): Promise<ClusterRecord>;
  update(change: (cluster: ClusterRecord) => ClusterRecord): Promise<ClusterRecord>;
  /**
   * Loads settings by OS name or OS+variant. Unset ones have Ganeti's defaults: untrusted, shown,
   * allowed.
   */
  loadOs(name: string): Promise<OsSettings>;
  updateOs(name: string, change: (settings: OsSettings) => OsSettings): Promise<OsSettings>;
  listOs(): Promise<readonly OsSettings[]>;
  /** Loads the settings of an OS's variants, by variant. */
  loadVariants(name: string): Promise<ReadonlyMap<string, OsSettings>>;
  /** Changes the settings of an OS and of all variants with settings, in one commit. */
  updateWholeOs(name: string, change: (settings: OsSettings) => OsSettings): Promise<void>;
}

export function createClusterRepository(store: Store, clock: Clock): ClusterRepository {
  const load = async (): Promise<ClusterRecord> => {
    const stored = await store.get(CLUSTER, CLUSTER);
    return parseRecord(clusterRecord, CLUSTER, stored ?? { id: CLUSTER, value: undefined });
  };
  const loadOs = async (name: string): Promise<OsSettings> => {
    const stored = await store.get(OS, name);
    return stored === undefined ? defaultOsSettings(name) : parseRecord(osSettings, OS, stored);
  };
  return {
    ...createProfileRepository(store),
    ...createBootRepository(store, clock),
    ...createNetworkRepository(store),
    ...createIdentityKeyRepository(store, clock),
    ensure: () => ensureCluster(store, clock.now()),
    load,
    update: async (change) => {
      for (;;) {
        const stored = await store.get(CLUSTER, CLUSTER);
        const next = change(
          parseRecord(clusterRecord, CLUSTER, stored ?? { id: CLUSTER, value: undefined }),
        );
        if (await tryCommit(store, CLUSTER, CLUSTER, stored?.revision, next)) return next;
      }
    },
    loadOs,
    updateOs: async (name, change) => {
      for (;;) {
        const stored = await store.get(OS, name);
        const current =
          stored === undefined ? defaultOsSettings(name) : parseRecord(osSettings, OS, stored);
        const next = change(current);
        if (await tryCommit(store, OS, name, stored?.revision, next)) return next;
      }
    },
    listOs: async () => (await store.list(OS)).map((stored) => parseRecord(osSettings, OS, stored)),
    loadVariants: async (name) => {
      const found = await listVariants(store, name);
      return new Map(
        found.map(({ settings }) => [settings.name.slice(name.length + 1), settings] as const),
      );
    },
    updateWholeOs: async (name, change) => {
      for (;;) {
        const stored = await store.get(OS, name);
        const variants = await listVariants(store, name);
        const writes: Write[] = variants.map(({ settings, revision }) => ({
          ...{ collection: OS, id: settings.name, expected: revision, value: change(settings) },
        }));
        const own =
          stored === undefined ? defaultOsSettings(name) : parseRecord(osSettings, OS, stored);
        const expected = stored?.revision ?? ('absent' as const);
        writes.push({ collection: OS, id: name, expected, value: change(own) });
        if (await tryCommitAll(store, writes)) return;
      }
    },
  };
}

async function listVariants(
  store: Store,
  name: string,
): Promise<{ readonly settings: OsSettings; readonly revision: number }[]> {
  const all = await store.list(OS);
  return all
    .filter(({ id }) => id.startsWith(`${name}+`))
    .map((stored) => ({
      settings: parseRecord(osSettings, OS, stored),
      revision: stored.revision,
    }));
}

function defaultOsSettings(name: string): OsSettings {
  return {
    schema: 1,
    name,
    trusted: false,
    hidden: false,
    blacklisted: false,
    safeInstall: 'optional',
    osParameters: {},
    osParametersPrivate: {},
  };
}

/** @returns false after a concurrent write */
async function tryCommit(
  store: Store,
  collection: string,
  id: string,
  revision: number | undefined,
  value: unknown,
): Promise<boolean> {
  return tryCommitAll(store, [{ collection, id, expected: revision ?? 'absent', value }]);
}

/** @returns false after a concurrent write */
async function tryCommitAll(store: Store, writes: readonly Write[]): Promise<boolean> {
  try {
    await store.commit(writes);
    return true;
  } catch (error) {
    if (error instanceof StoreConflict) return false;
    throw error;
  }
}
