import { networkRecord, type NetworkRecord } from '#shared/contract/network.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { parseRecord } from '#shared/store/readable-records.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store } from '#shared/store/store.ts';
import { removeUnused } from './remove-unused.ts';

export const NETWORKS = 'networks';
/** Values are the UUIDs of owning instances, by `NETWORK/ADDRESS`. */
export const NETWORK_IPS = 'claim-network-ip';

export interface TakenAddress {
  readonly network: string;
  readonly ip: string;
  /** The UUID of its instance. */
  readonly uuid: string;
}

/** Stores the cluster's networks for NICs of instances. */
export interface NetworkRepository {
  /** @throws AppError NOT_FOUND with the nearest name */
  loadNetwork(name: string): Promise<NetworkRecord>;
  /** Lists all networks, sorted by name. */
  listNetworks(): Promise<readonly NetworkRecord[]>;
  /** @throws AppError CONFLICT */
  createNetwork(network: NetworkRecord): Promise<void>;
  /**
   * Changes a network, and repeats reading, changing and writing after each concurrent write.
   * @throws AppError NOT_FOUND
   */
  updateNetwork(
    name: string,
    change: (network: NetworkRecord) => NetworkRecord | Promise<NetworkRecord>,
  ): Promise<NetworkRecord>;
  /** @param refuseUsed throws if an instance uses it; runs again after each concurrent write */
  removeNetwork(name: string, refuseUsed: () => Promise<void>): Promise<void>;
  /** Lists the addresses of instances in all networks. */
  listTakenAddresses(): Promise<readonly TakenAddress[]>;
}

export function createNetworkRepository(store: Store): NetworkRepository {
  const list = async (): Promise<readonly NetworkRecord[]> =>
    (await store.list(NETWORKS)).map((stored) => parseRecord(networkRecord, NETWORKS, stored));
  const noNetwork = async (name: string): Promise<AppError> => {
    const near = suggest(name, await store.ids(NETWORKS));
    return new AppError('NOT_FOUND', `there is no network '${name}'`, {
      details: { name },
      hint: near === null ? 'gnt-network list shows the networks' : `Did you mean ${near}?`,
    });
  };
  return {
    loadNetwork: async (name) => {
      const stored = await store.get(NETWORKS, name);
      if (stored === undefined) throw await noNetwork(name);
      return parseRecord(networkRecord, NETWORKS, stored);
    },
    listNetworks: list,
    createNetwork: async (value) => {
      try {
        await store.commit([{ collection: NETWORKS, id: value.name, expected: 'absent', value }]);
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error;
        throw networkExists(value.name, error);
      }
    },
    updateNetwork: async (name, change) => {
      for (;;) {
        const stored = await store.get(NETWORKS, name);
        if (stored === undefined) throw await noNetwork(name);
        const value = await change(parseRecord(networkRecord, NETWORKS, stored));
        const write = { collection: NETWORKS, id: name, expected: stored.revision, value };
        try {
          await store.commit([write]);
          return value;
        } catch (error) {
          if (!(error instanceof StoreConflict)) throw error;
        }
      }
    },
    removeNetwork: (name, refuseUsed) =>
      removeUnused(store, { collection: NETWORKS, id: name }, refuseUsed),
    listTakenAddresses: async () =>
      (await store.list(NETWORK_IPS)).map(({ id, value }) => {
        const [network = '', ip = ''] = id.split('/');
        return { network, ip, uuid: String(value) };
      }),
  };
}

export function networkExists(name: string, cause?: unknown): AppError {
  return new AppError('CONFLICT', `a network '${name}' exists already`, {
    details: { name },
    hint: `Choose another name, or change the network: gnt-network modify ${name}`,
    cause,
  });
}
