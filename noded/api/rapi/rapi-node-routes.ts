import { z } from 'zod';
import { common, defaultOnly } from '#shared/contract/ganeti-create.ts';
import { nodeRole } from '#shared/contract/node-role.ts';
import { isWithin } from '#shared/contract/submitter.ts';
import { GROUP } from '#shared/contract/node-group.ts';
import type { Overview } from '../../cluster/membership/overview.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { InstanceIndex } from '../../records/instance-index.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import { parseInput } from '../http/http-errors.ts';
import { pickFields } from './fields.ts';
import { groupFields, groupUuidOf, type GroupFacts } from './group-fields.ts';
import { nodeFields, type NodeFacts } from './node-fields.ts';
import { RapiFailure } from './rapi-failure.ts';
import {
  isSet,
  readRoute,
  submitRoute,
  type RapiRequest,
  type RapiRoute,
  type Submit,
} from './rapi-route.ts';
import type { RapiUser } from './users-file.ts';

const ROLES = { M: 'master', D: 'drained', O: 'offline' } as const;
/** Flags by role. Any node can do the work of a master candidate. */
const FLAGS = {
  regular: { drained: false, offline: false },
  'master-candidate': { drained: false, offline: false },
  drained: { drained: true },
  offline: { offline: true },
} as const;

const roleName = z.enum(['regular', 'master-candidate', 'drained', 'offline'], {
  error: 'expected one of regular, master-candidate, drained, offline',
});
const STATES = 'gnt measures the capacity of a node';
const modifyRequest = z.strictObject({
  ...common,
  drained: z.boolean().nullish(),
  offline: z.boolean().nullish(),
  master_candidate: z.literal(true, { error: 'every node is a master candidate' }).nullish(),
  master_capable: z.literal(true, { error: 'every node can be a master' }).nullish(),
  vm_capable: z.literal(true, { error: 'every node runs instances' }).nullish(),
  auto_promote: z.boolean().optional(),
  force: z.boolean().optional(),
  node_uuid: defaultOnly('give the name of the node, not its UUID'),
  powered: defaultOnly('this API does not control the power of nodes'),
  secondary_ip: defaultOnly('nodes have one address'),
  ndparams: defaultOnly('nodes have no parameters'),
  ...{ hv_state: defaultOnly(STATES), disk_state: defaultOnly(STATES) },
});

export interface NodeFactsSources {
  readonly overview: Pick<Overview, 'nodes'>;
  readonly index: Pick<InstanceIndex, 'list'>;
  readonly clusters: Pick<ClusterRepository, 'load'>;
}

export interface RapiNodeDependencies extends NodeFactsSources {
  readonly nodes: Pick<NodeRegistry, 'names'>;
  readonly submit: Submit;
}

/** Returns the resources of nodes and of the only node group, which all nodes belong to. */
export function nodeRoutes(dependencies: RapiNodeDependencies): readonly RapiRoute[] {
  const { submit, nodes } = dependencies;
  const find = async ({ params, user }: RapiRequest): Promise<NodeFacts> => {
    const name = params['name'] ?? '';
    const node = (await loadNodes(dependencies, user)).find((one) => one.name === name);
    if (node === undefined) throw new RapiFailure(404, `the cluster has no node '${name}'`);
    return node;
  };
  const modify = (name: string | undefined, flags: object): unknown => {
    return { opcode: 'NODE_SET_PARAMS', name: name ?? '', ...flags };
  };
  return [
    readRoute('/2/nodes', async ({ query, user }) => {
      if (isSet(query, 'bulk'))
        return (await loadNodes(dependencies, user)).map((node) => pickFields(nodeFields, node));
      return (await nodes.names()).toSorted().map((id) => ({ id, uri: `/2/nodes/${id}` }));
    }),
    readRoute('/2/nodes/:name', async (request) => {
      const fields = pickFields(nodeFields, await find(request));
      // Clients read Ganeti's older name of the field.
      return { ...fields, secondary_ip: fields['sip'] };
    }),
    readRoute(
      '/2/nodes/:name/role',
      async (request) => ROLES[nodeRole((await find(request)).flags)],
    ),
    submitRoute(submit, 'PUT', '/2/nodes/:name/role', ({ params, body }) =>
      modify(params['name'], FLAGS[parseInput(roleName, body)]),
    ),
    submitRoute(submit, 'POST', '/2/nodes/:name/modify', ({ params, body }) => {
      const { drained, offline } = parseInput(modifyRequest, body ?? {});
      return modify(params['name'], {
        drained: drained ?? undefined,
        offline: offline ?? undefined,
      });
    }),
    readRoute('/2/nodes/:name/tags', async (request) => {
      await find(request);
      return [];
    }),
    readRoute('/2/groups', async ({ query, user }) => {
      if (!isSet(query, 'bulk')) return [{ name: GROUP, uri: `/2/groups/${GROUP}` }];
      return [pickFields(groupFields, await loadGroup(dependencies, user))];
    }),
    readRoute('/2/groups/:name', async (request) => {
      requireGroup(request);
      return pickFields(groupFields, await loadGroup(dependencies, request.user));
    }),
    readRoute('/2/groups/:name/tags', (request) => {
      requireGroup(request);
      return [];
    }),
  ];
}

/** @throws RapiFailure 404 */
function requireGroup({ params }: RapiRequest): void {
  if (params['name'] !== GROUP)
    throw new RapiFailure(404, `the cluster has no node group '${params['name']}', only ${GROUP}`);
}

/** Returns all nodes, each with those of its instances that the user may see. */
export async function loadNodes(
  { overview, index, clusters }: NodeFactsSources,
  { scope }: RapiUser,
): Promise<readonly NodeFacts[]> {
  const [nodes, records, { uuid }] = await Promise.all([
    overview.nodes(),
    index.list(),
    clusters.load(),
  ]);
  const seen = records.filter((record) => isWithin(scope, record));
  const byNode = Map.groupBy(seen, ({ primaryNode }) => primaryNode);
  const groupUuid = groupUuidOf(uuid);
  return nodes.map((node) => {
    // An embedded store may have records under a former name of its only node.
    const instances = nodes.length === 1 ? seen : (byNode.get(node.name) ?? []);
    return {
      name: node.name,
      flags: node.flags,
      // Total and free capacity would reveal instances of other users.
      capacity: 'silent' in node || scope !== null ? null : node,
      instanceNames: instances.map(({ name }) => name),
      instanceDiskBytes: instances.reduce((sum, { diskBytes }) => sum + diskBytes, 0),
      groupUuid,
    };
  });
}

/** Returns the only node group. */
export async function loadGroup(
  { overview, index, clusters }: NodeFactsSources,
  { scope }: RapiUser,
): Promise<GroupFacts> {
  const [nodes, records, cluster] = await Promise.all([
    overview.nodes(),
    index.list(),
    clusters.load(),
  ]);
  return {
    uuid: groupUuidOf(cluster.uuid),
    createdAtMs: cluster.createdAtMs,
    nodeNames: nodes.map(({ name }) => name),
    instanceNames: records.filter((one) => isWithin(scope, one)).map(({ name }) => name),
  };
}
