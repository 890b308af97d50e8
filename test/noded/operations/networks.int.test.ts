import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { NetworkConnection, NetworkRecord } from '#shared/contract/network.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { bridgeOf, natNamesOf } from '../../../noded/net/tenant/nat-names.ts';
import { connectNetworkHandler } from '../../../noded/operations/networks.ts';
import {
  type ClusterRepository,
  createClusterRepository,
} from '../../../noded/records/cluster-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';

const LAN: NetworkRecord = {
  ...{ schema: 1, name: 'lan', uuid: '11111111-1111-4111-8111-111111111111' },
  ...{ network: '10.9.0.0/24', gateway: '10.9.0.1', macPrefix: null, reserved: [], tags: [] },
  connections: {},
};

const noNat = {
  check: () => Promise.resolve(),
  settle: () => Promise.resolve(),
  follow: () => Promise.resolve(),
};

async function openClusters(t: TestContext): Promise<ClusterRepository> {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-connect-'));
  const store = createSqliteStore({ path: join(dir, 'store.sqlite') });
  t.after(async () => {
    await store.close();
    await rm(dir, { recursive: true });
  });
  return createClusterRepository(store, new ManualClock());
}

async function prepareConnect(
  clusters: ClusterRepository,
  node: string,
  connection: NetworkConnection,
): Promise<void> {
  const nodes = { names: () => Promise.resolve(['node1', 'node2']) };
  const handler = connectNetworkHandler({ clusters, nodeName: 'node1', nodes, nat: noNat });
  await handler.prepare(
    { opcode: 'NETWORK_CONNECT', name: 'lan', nodes: [node], connection },
    new AbortController().signal,
  );
}

test('no node makes a network without a gateway, this one or another', async (t) => {
  const clusters = await openClusters(t);
  await clusters.createNetwork({ ...LAN, gateway: null });
  for (const node of ['node1', 'node2'])
    await assert.rejects(prepareConnect(clusters, node, { mode: 'nat' }), /has no gateway/, node);
});

test('the bridge of a NAT network is no link of another one', async (t) => {
  const clusters = await openClusters(t);
  await clusters.createNetwork(LAN);
  const link = bridgeOf(natNamesOf('/'), LAN);
  const connection = { mode: 'bridged', link } as const;
  await assert.rejects(prepareConnect(clusters, 'node1', connection), { code: 'CONFLICT' });
});

test('a connection that fails is taken back, and not what another node connected meanwhile', async (t) => {
  const clusters = await openClusters(t);
  await clusters.createNetwork(LAN);
  let followed = 0;
  const handler = connectNetworkHandler({
    ...{ clusters, nodeName: 'node1' },
    nodes: { names: () => Promise.resolve(['node1', 'node2']) },
    nat: {
      check: () => Promise.resolve(),
      settle: async () => {
        await clusters.updateNetwork('lan', (network) => ({
          ...network,
          connections: { ...network.connections, node2: { mode: 'nat' } },
        }));
        throw new AppError('NETWORK_SETUP', 'dnsmasq did not start');
      },
      follow: () => Promise.resolve(void (followed += 1)),
    },
  });
  const connect = await handler.prepare(
    { opcode: 'NETWORK_CONNECT', name: 'lan', nodes: ['node1'], connection: { mode: 'nat' } },
    new AbortController().signal,
  );
  await assert.rejects(async () => connect({} as never), /dnsmasq did not start/);
  assert.deepEqual((await clusters.loadNetwork('lan')).connections, { node2: { mode: 'nat' } });
  assert.equal(followed, 1);
});
