import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Opcode } from '#shared/contract/opcode.ts';
import {
  nodeRoutes,
  type RapiNodeDependencies,
} from '../../../../noded/api/rapi/rapi-node-routes.ts';
import type { RapiRequest } from '../../../../noded/api/rapi/rapi-route.ts';
import type { RapiUser } from '../../../../noded/api/rapi/users-file.ts';

const GIB = 1024 ** 3;
const WRITER: RapiUser = { name: 'writer', role: 'write', scope: null };
const BOUND: RapiUser = { name: 'bound', role: 'write', scope: { tags: ['blue'], names: [] } };
const submitted: Opcode[] = [];

const instance = (name: string, primaryNode: string, tags: readonly string[]) => {
  return { name, primaryNode, tags, diskBytes: 10 * GIB };
};
const node = (name: string, flags: object = {}) => ({
  name,
  flags: { drained: false, offline: false, ...flags },
  cpus: 8,
  memoryMiB: 16_384,
  memoryFreeMiB: 8192,
  diskFreeBytes: 100 * GIB,
});
const routes = nodeRoutes({
  overview: {
    nodes: async () => [
      node('node1'),
      node('node2', { drained: true }),
      { name: 'node3', flags: { drained: false, offline: true }, silent: 'it is marked offline' },
    ],
  },
  index: {
    list: async () => [instance('web1', 'node1', ['blue']), instance('web2', 'node1', [])],
  },
  clusters: {
    load: async () => ({ uuid: '5c1d8a54-0d7e-4d6c-9d3a-3a2f6b1c7e10', createdAtMs: 1000 }),
  },
  nodes: { names: async () => ['node2', 'node1', 'node3'] },
  submit: async (opcode: Opcode) => submitted.push(opcode),
} as unknown as RapiNodeDependencies);

async function ask(
  method: string,
  path: string,
  request: Partial<RapiRequest> = {},
): Promise<unknown> {
  const route = routes.find((one) => one.method === method && one.path === path);
  assert.ok(route, `${method} ${path}`);
  return route.handle({
    user: WRITER,
    params: {},
    query: new URLSearchParams(),
    body: undefined,
    signal: AbortSignal.timeout(1000),
    ...request,
  });
}

test('the total of a node is its free space and the disks of its instances', async () => {
  const fields = (await ask('GET', '/2/nodes/:name', { params: { name: 'node1' } })) as object;
  const { dtotal, dfree, secondary_ip } = fields as Record<string, unknown>;
  assert.deepEqual([dtotal, dfree, secondary_ip], [120 * 1024, 100 * 1024, null]);
});

test('a bound user sees neither capacity nor instances of other users', async () => {
  const query = new URLSearchParams('bulk=1');
  const [first] = (await ask('GET', '/2/nodes', { user: BOUND, query })) as object[];
  const { dtotal, mtotal, pinst_list } = first as Record<string, unknown>;
  assert.deepEqual([dtotal, mtotal, pinst_list], [null, null, ['web1']]);
});

test('all nodes belong to one group, whose UUID each node names', async () => {
  const query = new URLSearchParams('bulk=1');
  const groups = (await ask('GET', '/2/groups', { query })) as Record<string, unknown>[];
  const nodes = (await ask('GET', '/2/nodes', { query })) as Record<string, unknown>[];
  assert.equal(groups.length, 1);
  const { name, uuid, node_list, node_cnt } = groups[0] ?? {};
  assert.deepEqual([name, node_list, node_cnt], ['default', ['node1', 'node2', 'node3'], 3]);
  assert.match(
    String(uuid),
    /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  );
  assert.deepEqual(new Set(nodes.map((one) => one['group.uuid'])), new Set([uuid]));
});

test('a group that does not exist is refused by name', async () => {
  await assert.rejects(ask('GET', '/2/groups/:name', { params: { name: 'other' } }), {
    status: 404,
    message: "the cluster has no node group 'other', only default",
  });
});

for (const [name, role] of [
  ['node1', 'master'],
  ['node2', 'drained'],
  ['node3', 'offline'],
])
  test(`the role of ${name} is ${role}`, async () => {
    assert.equal(await ask('GET', '/2/nodes/:name/role', { params: { name: name ?? '' } }), role);
  });

for (const [body, flags] of [
  ['drained', { drained: true }],
  ['offline', { offline: true }],
  ['regular', { drained: false, offline: false }],
  ['master-candidate', { drained: false, offline: false }],
] as const)
  test(`the role ${body} sets flags of the node`, async () => {
    await ask('PUT', '/2/nodes/:name/role', { params: { name: 'node1' }, body });
    assert.deepEqual(submitted.pop(), { opcode: 'NODE_SET_PARAMS', name: 'node1', ...flags });
  });

test('the role master is refused', async () => {
  const asked = ask('PUT', '/2/nodes/:name/role', { params: { name: 'node1' }, body: 'master' });
  await assert.rejects(asked, /expected one of regular, master-candidate, drained, offline/);
});
