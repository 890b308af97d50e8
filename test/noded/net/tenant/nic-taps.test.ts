import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceNic } from '#shared/contract/instance.ts';
import type { NetworkConnection, NetworkRecord } from '#shared/contract/network.ts';
import type { ChannelTap } from '../../../../noded/net/channel/channel-network.ts';
import { bridgeOf, natNamesOf } from '../../../../noded/net/tenant/nat-names.ts';
import { createNicTaps } from '../../../../noded/net/tenant/nic-taps.ts';
import { bridgesOnly } from '../../support/bridges-only.ts';

const UUID = '11111111-1111-4111-8111-111111111111';

test('a bridged NIC whose link is the bridge of a NAT network is refused', async () => {
  for (const root of ['/', '/srv/other']) {
    const link = bridgeOf(natNamesOf(root), { uuid: UUID });
    const nic: InstanceNic = {
      ...{ uuid: UUID, mac: 'aa:00:00:00:00:01', mode: 'bridged', link, name: null },
      ...{ ip: null, network: null },
    };
    await assert.rejects(bridgesOnly.check(nic), { code: 'CONFLICT' });
    await assert.rejects(bridgesOnly.open(nic, 'web'), { code: 'CONFLICT' });
  }
});

const NETWORK: NetworkRecord = {
  ...{ schema: 1, name: 'lan', uuid: UUID, network: '10.9.0.0/24', gateway: '10.9.0.1' },
  ...{ macPrefix: null, reserved: [], tags: [], connections: {} },
};
const nic = (changes: Partial<InstanceNic> = {}): InstanceNic => ({
  ...{ uuid: UUID, mac: 'aa:00:00:00:00:01', mode: 'bridged', name: null, networkName: 'lan' },
  ...{ link: null, ip: '10.9.0.5', network: null, ...changes },
});

/** Creates the TAPs of a node that is connected to the network in this way. */
function lab(connection: NetworkConnection | undefined) {
  const calls: unknown[] = [];
  const taps = createNicTaps({
    nodeName: 'node1',
    loadNetwork: async () => ({ ...NETWORK, ...(connection && { connections: { node1: connection } }) }), // prettier-ignore
    nat: {
      openNatTap: async (network, guest) => {
        calls.push(network.name, guest);
        return {} as ChannelTap;
      },
      tidy: async () => void calls.push('tidy'),
      requireSound: (network) => void calls.push(`sound ${network}`),
    },
  });
  return { calls, taps };
}

test('a NIC of a NAT network is checked and opened by that network', async () => {
  const { calls, taps } = lab({ mode: 'nat' });
  await taps.check(nic());
  await taps.open(nic(), 'web1');
  const { uuid, mac, ip } = nic();
  assert.deepEqual(calls, [
    'sound lan',
    'lan',
    { uuid, mac, ip, name: 'web1', network: 'lan', reach: undefined },
  ]);
});

test('a NIC of a bridged network needs the bridge of its connection', async () => {
  const { calls, taps } = lab({ mode: 'bridged', link: 'gnt-absent' });
  await assert.rejects(taps.check(nic()), { code: 'HOST_PREREQUISITE', message: /gnt-absent/ });
  await assert.rejects(taps.open(nic(), 'web1'), { code: 'HOST_PREREQUISITE' });
  assert.deepEqual(calls, []);
});

test('a NIC of a network that this node is not connected to is refused', async () => {
  await assert.rejects(lab(undefined).taps.check(nic()), { code: 'CONFLICT', message: /lan/ });
});

test('a NIC without a bridge needs no check', async () => {
  const { calls, taps } = lab(undefined);
  await taps.check(nic({ mode: 'user' }));
  assert.deepEqual(calls, []);
});
