import type { NetworkRecord } from '#shared/contract/network.ts';
import { createNicTaps, type NicTaps } from '../../../noded/net/tenant/nic-taps.ts';

/** The NICs of a node that has bridges, and no network of the cluster. */
export const bridgesOnly: NicTaps = createNicTaps({
  nodeName: 'node1.example.com',
  loadNetwork: (name): Promise<NetworkRecord> => Promise.reject(new Error(`no network ${name}`)),
  nat: {
    openNatTap: () => Promise.reject(new Error('no network')),
    tidy: () => Promise.resolve(),
    requireSound: () => undefined,
  },
});
