import type { NetworkRecord } from '#shared/contract/network.ts';
import {
  createInstanceCards,
  type InstanceCards,
} from '../../../noded/net/tenant/instance-cards.ts';

/** The cards of a node that has bridges, and no network of the cluster. */
export const bridgesOnly: InstanceCards = createInstanceCards({
  nodeName: 'node1.example.com',
  loadNetwork: (name): Promise<NetworkRecord> => Promise.reject(new Error(`no network ${name}`)),
  nat: {
    openCard: () => Promise.reject(new Error('no network')),
    tidy: () => Promise.resolve(),
    requireSound: () => undefined,
  },
});
