import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { InstanceInfo, InstanceRecord } from '#shared/contract/instance.ts';
import { NO_FLAGS } from '#shared/contract/node-flags.ts';
import {
  createClusterOverview,
  createOwnOverview,
  type OverviewSources,
} from '../../../../noded/cluster/membership/overview.ts';
import type { NodeFacts } from '../../../../noded/cluster/membership/running-elsewhere.ts';
import type { IndexedInstance } from '../../../../noded/records/instance-index.ts';
import { sampleNode, sampleOs } from '../../../cluster-cli/support/samples.ts';
import { type PeerAnswers, startHttpPeers } from '../../support/http-peers.ts';
import { clusterRecord, instanceRecord } from '../../support/records.ts';

const on = (primaryNode: string, n: number): InstanceRecord =>
  instanceRecord(
    { name: `web${n}` },
    {
      ...{ primaryNode, installState: 'installed', adminState: 'up' },
      uuid: `00000000-0000-4000-8000-00000000000${n}`,
    },
  );
const RECORDS = [on('node1', 1), on('node2', 2), on('node3', 3), on('node1.old', 4)];
const orphan = { uuid: RECORDS[0]?.uuid ?? '', name: 'lost', pid: 7, tap: null };

interface World {
  readonly answers?: PeerAnswers;
  readonly facts?: Readonly<Record<string, NodeFacts>>;
}

/** Creates the overview of node1, formerly node1.old, where web1 runs. */
async function lab(t: TestContext, { answers = {}, facts = {} }: World = {}) {
  const peers = await startHttpPeers(t, answers);
  const kept = {
    machine: { pid: 42, accelerator: 'tcg', startedAtMs: 0, halt: null, uuid: RECORDS[0]?.uuid },
    ...{ device: 'gnt.com.0', lostSecrets: new Set() },
  };
  const find = (test: (record: InstanceRecord) => boolean) => RECORDS.find(test);
  const sources = {
    instances: {
      findByName: async (name: string) => find((one) => one.name === name) ?? assert.fail(name),
      findByUuid: async (uuid: string) => find((one) => one.uuid === uuid),
      readSome: async (uuids: readonly string[]) => ({
        readable: RECORDS.filter(({ uuid }) => uuids.includes(uuid)).map((value) => ({ value })),
        bad: [],
      }),
    },
    index: { list: async () => RECORDS as unknown as readonly IndexedInstance[] },
    clusters: { load: async () => clusterRecord, loadProfile: async () => undefined },
    ...{ nodeName: 'node1', owns: (node: string) => node.startsWith('node1') },
    runner: { running: (uuid: string) => (uuid === RECORDS[0]?.uuid ? kept : undefined) },
    orphans: { list: () => [orphan] },
    ...{ outcomes: { removalOf: () => undefined }, guestReports: { report: () => null } },
    ...{ lifecycles: { explain: () => null }, bootViews: { state: () => null } },
    describeNode: async () => ({ ...sampleNode(), name: 'node1' }),
    listOs: async () => [sampleOs()],
  } as unknown as OverviewSources;
  const names = async () => ['node3', 'node2', 'node1'];
  const list = async () => (await names()).map((name) => ({ name, flags: { ...NO_FLAGS, drained: name === 'node2' } })); // prettier-ignore
  const own = createOwnOverview(sources);
  const cluster = createClusterOverview(own, {
    ...sources,
    peers,
    nodes: { names, list } as never,
    elsewhere: { facts: async () => new Map(Object.entries(facts)) },
  });
  return { own, cluster };
}

test('a node without a common store describes itself alone', async (t) => {
  const { own } = await lab(t);
  assert.deepEqual(
    (await own.nodes()).map(({ name }) => name),
    ['node1'],
  );
  assert.deepEqual(await own.operatingSystems(), [
    { node: 'node1', operatingSystems: [sampleOs()] },
  ]);
  assert.deepEqual(await own.orphans(), [{ ...orphan, node: 'node1' }]);
});

const statusesOf = (all: Iterable<Pick<InstanceInfo, 'name' | 'status'>>) =>
  Object.fromEntries([...all].map(({ name, status }) => [name, status]));
const told = (uuid = RECORDS[1]?.uuid ?? ''): NodeFacts => ({
  ...{ state: 'told', room: null },
  running: new Map([[uuid, { uuid, pid: 9, accelerator: 'kvm', startedAtMs: 0, tap: 'x' }]]),
});

for (const [what, node2, expected] of [
  ['its node tells that it runs', told(), 'running'],
  ['its node tells of others', told(orphan.uuid), 'ERROR_down'],
  ['its node is silent', { state: 'silent' }, 'ERROR_nodedown'],
  ['its node fails', { state: 'failing' }, 'ERROR_nodefails'],
  ['its node is offline', { state: 'offline' }, 'ERROR_nodeoffline'],
  ['its node was removed', undefined, 'ERROR_nodedown'],
] as const) {
  test(`the list shows ${expected} for an instance elsewhere when ${what}`, async (t) => {
    const { cluster } = await lab(t, { facts: node2 === undefined ? {} : { node2 } });
    assert.deepEqual(statusesOf(await cluster.summaries()), {
      ...{ web1: 'running', web2: expected, web3: 'ERROR_nodedown', web4: 'ERROR_down' },
    });
  });
}

test('a row of the list has neither the UUID of its run nor fields that are not listed', async (t) => {
  const { cluster } = await lab(t, { facts: { node2: told() } });
  const rows = [...(await cluster.summaries())];
  for (const { running } of rows.slice(0, 2)) assert.ok(running && !('uuid' in running));
  for (const row of rows)
    for (const field of ['profiles', 'bootEnv', 'stoppedByJob']) assert.ok(!(field in row), field);
});

test('an instance is described by its own node', async (t) => {
  const elsewhere = await lab(t);
  const info = await elsewhere.own.instance('web2');
  const answers = { node2: { '/v1/instances/web2': { ...info, explanation: 'by node2' } } };
  const { cluster } = await lab(t, { answers });
  assert.equal((await cluster.instance('web2')).explanation, 'by node2');
  assert.equal((await cluster.instance('web1')).status, 'running');
});

for (const [what, node2, expected] of [
  ['is silent', 'silent', 'ERROR_nodedown'],
  ['is offline', 'offline', 'ERROR_nodeoffline'],
  ['answers nonsense', { '/v1/instances/web2': { name: 7 } }, 'ERROR_nodefails'],
] as const) {
  test(`an instance is described by its record when its node ${what}`, async (t) => {
    const { cluster } = await lab(t, { answers: { node2 } });
    assert.equal((await cluster.instance('web2')).status, expected);
  });
}

test('an instance that its node does not have is gone', async (t) => {
  const { cluster } = await lab(t, { answers: { node2: {} } });
  await assert.rejects(cluster.instance('web2'), { code: 'INSTANCE_NOT_FOUND' });
});

test('all nodes are listed by name, a silent one with its instances and flags', async (t) => {
  const answers = {
    node2: 'silent',
    node3: { '/v1/node': { ...sampleNode(), name: 'node3' } },
  } as const;
  const { cluster } = await lab(t, { answers });
  const [node1, node2, node3, ...others] = await cluster.nodes();
  assert.deepEqual(others, []);
  assert.equal(node1?.name, 'node1');
  assert.deepEqual(node2, {
    ...{ name: 'node2', silent: "node 'node2' does not answer", instances: 1 },
    flags: { ...NO_FLAGS, drained: true },
  });
  assert.ok(node3 && !('silent' in node3));
});

test('definitions and orphans are those of all nodes that answer', async (t) => {
  const answers = {
    node2: 'silent',
    node3: { '/v1/os': [sampleOs()], '/v1/orphans': [{ ...orphan, node: 'node3' }] },
  } as const;
  const { cluster } = await lab(t, { answers });
  assert.deepEqual(await cluster.operatingSystems(), [
    { node: 'node1', operatingSystems: [sampleOs()] },
    { node: 'node2', silent: "node 'node2' does not answer" },
    { node: 'node3', operatingSystems: [sampleOs()] },
  ]);
  assert.deepEqual(
    (await cluster.orphans()).map(({ node }) => node),
    ['node1', 'node3'],
  );
});

test('the whole list joins the reports of all nodes in the order of names', async (t) => {
  const { own } = await lab(t);
  const reported = { ...(await own.instance('web2')), explanation: 'by node2' };
  const answers = {
    node2: { '/v1/own-instances': `${JSON.stringify(reported)}\n` },
    node3: 'silent',
  } as const;
  const { cluster } = await lab(t, { answers });
  const all = (await Array.fromAsync(cluster.instanceSlices())).flat();
  assert.deepEqual(
    all.map(({ name, status, explanation }) => [name, status, explanation === 'by node2']),
    [
      ['web1', 'running', false],
      ['web2', 'ERROR_down', true],
      ['web3', 'ERROR_nodedown', false],
      ['web4', 'ERROR_down', false],
    ],
  );
});
