import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { MAX_NETWORKS, MAX_RESERVED, type NetworkRecord } from '#shared/contract/network.ts';
import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { JobContext, JobHandler } from '../../../noded/jobs/job-handler.ts';
import {
  addNetworkHandler,
  connectNetworkHandler,
  disconnectNetworkHandler,
  modifyNetworkHandler,
  removeNetworkHandler,
} from '../../../noded/operations/networks.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { parseOpcode } from '../support/opcodes.ts';
import { instanceRecord } from '../support/records.ts';

const LAN: NetworkRecord = {
  ...{ schema: 1, name: 'lan', uuid: '11111111-1111-4111-8111-111111111111' },
  ...{ network: '10.9.0.0/24', gateway: '10.9.0.1', macPrefix: 'aa:bb:cc' },
  ...{ reserved: ['10.9.0.5'], tags: ['a', 'b'], connections: {} },
};
const NAT = { mode: 'nat' } as const;
const HANDLERS = {
  NETWORK_ADD: addNetworkHandler,
  NETWORK_SET_PARAMS: modifyNetworkHandler,
  NETWORK_CONNECT: connectNetworkHandler,
  NETWORK_DISCONNECT: disconnectNetworkHandler,
  NETWORK_REMOVE: removeNetworkHandler,
} as Readonly<Record<string, (of: OperationDependencies) => JobHandler<never>>>;

interface World {
  readonly network?: Partial<NetworkRecord>;
  readonly others?: number;
  readonly taken?: readonly string[];
  readonly instances?: readonly InstanceRecord[];
  readonly defaultNet?: string;
  /** Errors of the host and, after it, of the store. */
  readonly failures?: { readonly settle: Error; readonly update?: Error };
}

/** Runs an operation, and returns the network after it. */
async function run(input: OpcodeInput, world: World = {}, commits: string[] = []) {
  const calls: string[] = [];
  let record: NetworkRecord = { ...LAN, ...world.network };
  const others = Array.from({ length: world.others ?? 0 }, (_, n) => ({ ...LAN, name: `net${n}` }));
  const dependencies = {
    nodeName: 'node1',
    nodes: { names: async () => ['node1', 'node2'] },
    instances: { list: async () => world.instances ?? [] },
    nat: {
      check: async () => void calls.push('check'),
      settle: async () => {
        calls.push('settle');
        if (world.failures !== undefined) throw world.failures.settle;
      },
      follow: async () => void calls.push('follow'),
    },
    clusters: {
      load: async () => ({ launchDefaults: { net: world.defaultNet } }),
      loadNetwork: async () => record,
      listNetworks: async () => [record, ...others],
      listTakenAddresses: async () =>
        (world.taken ?? []).map((text) => {
          const [network, ip] = text.split(' ');
          return { network, ip };
        }),
      createNetwork: async (made: NetworkRecord) => {
        record = made;
      },
      updateNetwork: async (
        _: string,
        change: (former: NetworkRecord) => NetworkRecord | Promise<NetworkRecord>,
      ) => {
        const isAgain = calls.includes('settle');
        if (isAgain && world.failures?.update !== undefined) throw world.failures.update;
        record = await change(record);
        commits.push(Object.keys(record.connections).join());
      },
      removeNetwork: async (name: string, refuse: () => Promise<void>) => {
        await refuse();
        calls.push(`remove ${name}`);
      },
    },
  } as unknown as OperationDependencies;
  const opcode = parseOpcode(input);
  const handler = HANDLERS[opcode.opcode]?.(dependencies) ?? assert.fail(opcode.opcode);
  const execute = await handler.prepare(opcode as never, new AbortController().signal);
  const result = await execute({} as JobContext);
  return { record, calls, result };
}

const nicOn = (networkName: string, primaryNode: string, ofRun = false): InstanceRecord => {
  const nics = [{ ...instanceRecord().nics[0], networkName }] as InstanceRecord['nics'];
  const own = ofRun ? { nics: [], partsOfRun: { nics, disks: [] } } : { nics };
  return instanceRecord({ name: `on-${primaryNode}` }, { primaryNode, ...own });
};
const set = (changes: object): OpcodeInput => ({
  opcode: 'NETWORK_SET_PARAMS',
  name: 'lan',
  ...changes,
});
const add = (changes: object): OpcodeInput => ({
  opcode: 'NETWORK_ADD',
  name: 'new',
  network: '10.8.0.0/16',
  ...changes,
});
const connect = (changes: object): OpcodeInput => ({
  opcode: 'NETWORK_CONNECT',
  name: 'lan',
  connection: NAT,
  ...changes,
});
const disconnect = (...nodes: readonly string[]): OpcodeInput =>
  ({ opcode: 'NETWORK_DISCONNECT', name: 'lan', nodes }) as OpcodeInput;
const remove: OpcodeInput = { opcode: 'NETWORK_REMOVE', name: 'lan' };
const addresses = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, n) => `10.8.${Math.floor(n / 250) + 1}.${(n % 250) + 1}`);

for (const [what, input, expected] of [
  [
    'has its addresses in order, once each',
    add({ addReserved: ['10.8.0.10', '10.8.0.9', '10.8.0.10'], tags: ['x', 'x'] }),
    { gateway: null, macPrefix: null, reserved: ['10.8.0.9', '10.8.0.10'], tags: ['x'] },
  ],
  ['keeps its gateway', add({ gateway: '10.8.0.1' }), { gateway: '10.8.0.1', reserved: [] }],
  ['gets another gateway', set({ gateway: '10.9.0.2' }), { gateway: '10.9.0.2' }],
  ['loses its gateway', set({ gateway: null }), { gateway: null, macPrefix: 'aa:bb:cc' }],
  ['loses its prefix', set({ macPrefix: null }), { gateway: '10.9.0.1', macPrefix: null }],
  [
    'gets tags and loses one',
    set({ addTags: ['c', 'b'], removeTags: ['a'] }),
    { tags: ['b', 'c'] },
  ],
  [
    'gets and loses reservations',
    set({ addReserved: ['10.9.0.4'], removeReserved: ['10.9.0.5'] }),
    { reserved: ['10.9.0.4'] },
  ],
  ['is connected on all nodes', connect({}), { connections: { node1: NAT, node2: NAT } }],
  ['is connected on one node', connect({ nodes: ['node2'] }), { connections: { node2: NAT } }],
] as const) {
  test(`a network ${what}`, async () => {
    const { record } = await run(input);
    for (const [key, value] of Object.entries(expected))
      assert.deepEqual(record[key as keyof NetworkRecord], value, key);
  });
}

const CONNECTED = { connections: { node1: NAT, node2: NAT } };
test('a network is disconnected on the given nodes, or on all', async () => {
  const given = await run(disconnect('node2'), { network: CONNECTED });
  assert.deepEqual(given.record.connections, { node1: NAT });
  assert.deepEqual(given.calls, ['settle']);
  const all = await run(disconnect(), { network: CONNECTED });
  assert.deepEqual(all.record.connections, {});
});

test('only a connection of this node is checked', async () => {
  assert.deepEqual((await run(connect({ nodes: ['node1'] }))).calls, ['check', 'settle']);
  assert.deepEqual((await run(connect({ nodes: ['node2'] }))).calls, ['settle']);
});

test('the last networks and reservations below the limits are accepted', async () => {
  await run(add({}), { others: MAX_NETWORKS - 2 });
  const { record } = await run(add({ addReserved: addresses(MAX_RESERVED) }));
  assert.equal(record.reserved.length, MAX_RESERVED);
});

test('connections of other nodes and NICs elsewhere do not keep a network', async () => {
  const instances = [nicOn('other', 'node1'), nicOn('lan', 'node2')];
  await run(disconnect('node1'), { network: CONNECTED, instances });
  const unused = [nicOn('other', 'node1')];
  assert.deepEqual((await run(remove, { instances: unused, defaultNet: 'network=lan2' })).calls, [
    'remove lan',
  ]);
  await run(set({ gateway: '10.9.0.1' }), { network: CONNECTED });
  await run(set({ addReserved: ['10.9.0.7'] }), { taken: ['lan 10.9.0.8', 'other 10.9.0.7'] });
  await run(set({ addReserved: ['10.9.0.5'] }), { taken: ['lan 10.9.0.5'] });
});

for (const [what, input, world, code, message] of [
  ['the name of another', add({ name: 'lan' }), {}, 'CONFLICT', /lan/],
  ['one too many', add({}), { others: MAX_NETWORKS - 1 }, 'VALIDATION', /already \d+ networks/],
  ['an address outside', add({ addReserved: ['10.7.0.1'] }), {}, 'VALIDATION', /10\.7\.0\.1/],
  ['a gateway outside', add({ gateway: '10.7.0.1' }), {}, 'VALIDATION', /10\.7\.0\.1/],
  [
    'too many reservations',
    set({ addReserved: ['10.8.9.9'] }),
    {
      network: { network: '10.8.0.0/16', gateway: null, reserved: [...addresses(MAX_RESERVED)] },
    },
    ...(['VALIDATION', /would have \d+ reserved/] as const),
  ],
  [
    'the loss of a missing reservation',
    set({ removeReserved: ['10.9.0.6'] }),
    {},
    ...(['VALIDATION', /^10\.9\.0\.6 is not reserved/] as const),
  ],
  [
    'another gateway while it is connected',
    set({ gateway: '10.9.0.2' }),
    { network: CONNECTED },
    ...(['CONFLICT', /its nodes act as its gateway/] as const),
  ],
  [
    'an address of an instance',
    set({ addReserved: ['10.9.0.7'] }),
    { taken: ['lan 10.9.0.7'] },
    ...(['CONFLICT', /10\.9\.0\.7 of network 'lan' belongs/] as const),
  ],
  [
    'a gateway of an instance',
    set({ gateway: '10.9.0.7' }),
    { taken: ['lan 10.9.0.7'] },
    ...(['CONFLICT', /belongs to an instance/] as const),
  ],
  ['an unknown node', connect({ nodes: ['node3'] }), {}, 'NODE_NOT_FOUND', /node3/],
  [
    'a second mode',
    connect({}),
    { network: { connections: { node2: { mode: 'bridged', link: 'br0' } } } },
    ...(['CONFLICT', /in mode bridged on node2/] as const),
  ],
  ['NAT without a gateway', connect({}), { network: { gateway: null } }, 'VALIDATION', /gateway/],
  ['an end on no node', disconnect(), {}, 'CONFLICT', /connected on no node/],
  [
    'an end on another node',
    disconnect('node3'),
    { network: CONNECTED },
    ...(['CONFLICT', /not on node3/] as const),
  ],
  [
    'an end on a node with NICs',
    disconnect('node2'),
    { network: CONNECTED, instances: [nicOn('lan', 'node2')] },
    ...(['CONFLICT', /NICs of on-node2/] as const),
  ],
  [
    'an end under a running NIC',
    disconnect('node2'),
    { network: CONNECTED, instances: [nicOn('lan', 'node2', true)] },
    ...(['CONFLICT', /NICs of on-node2/] as const),
  ],
  ['its removal while connected', remove, { network: CONNECTED }, 'CONFLICT', /on node1, node2/],
  [
    'its removal while used',
    remove,
    { instances: [nicOn('lan', 'node2')] },
    ...(['CONFLICT', /NICs of on-node2/] as const),
  ],
  [
    'its removal as the default',
    remove,
    { defaultNet: 'mode=bridged,network=lan' },
    ...(['CONFLICT', /is the default network/] as const),
  ],
] as const) {
  test(`a network is refused ${what}`, async () => {
    await assert.rejects(run(input, world as World), { code, message });
  });
}

const settle = new AppError('HOST_PREREQUISITE', 'dnsmasq is missing');

test('a connection that fails on this node is reverted, and those of other jobs stay', async () => {
  const commits: string[] = [];
  const world = { network: { connections: { node2: NAT } }, failures: { settle } };
  await assert.rejects(run(connect({ nodes: ['node1'] }), world, commits), settle);
  assert.deepEqual(commits, ['node2,node1', 'node2']);
});

test('a connection that fails and cannot be reverted names both failures', async () => {
  const failures = { settle, update: new AppError('STORE_UNAVAILABLE', 'no answer') };
  await assert.rejects(run(connect({ nodes: ['node1'] }), { failures }), {
    ...{ code: 'NETWORK_SETUP', message: "network 'lan' stays connected: no answer" },
    hint: /dnsmasq is missing/,
  });
});
