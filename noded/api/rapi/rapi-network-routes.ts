import { z } from 'zod';
import { common } from '#shared/contract/ganeti-create.ts';
import { MAX_NETWORKS, type NetworkInfo } from '#shared/contract/network.ts';
import { isWithin } from '#shared/contract/submitter.ts';
import { parseInput } from '../http/http-errors.ts';
import { listNetworkInfos } from '../http/object-routes.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { InstanceIndex } from '../../records/instance-index.ts';
import { networkFields } from './network-fields.ts';
import { pickFields } from './fields.ts';
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

/** Ganeti's group of all nodes, the only one here. */
const ALL_NODES = 'default';
const MODES = ['bridged', 'nat'] as const;

const addresses = z.string().array().optional();
/** Unsupported settings are refused by name. Ganeti's clients send `null` for unset ones. */
const unsupported = z.null({ error: 'networks of this node are IPv4 only' }).optional();
const createRequest = z.strictObject({
  ...common,
  network_name: z.string(),
  network: z.string(),
  gateway: z.string().nullish(),
  network6: unsupported,
  gateway6: unsupported,
  mac_prefix: z.string().nullish(),
  add_reserved_ips: addresses.nullable(),
  tags: z.string().array().optional(),
  conflicts_check: z.boolean().optional(),
});
const modifyRequest = z.strictObject({
  ...common,
  gateway: z.string().nullable().optional(),
  network6: unsupported,
  gateway6: unsupported,
  mac_prefix: z.string().nullable().optional(),
  add_reserved_ips: addresses.nullable(),
  remove_reserved_ips: addresses.nullable(),
});
const groupName = z.literal(ALL_NODES, {
  error: `the only group is '${ALL_NODES}'; use node_names to name nodes`,
});
/** Ganeti's fields, and the nodes to connect. */
const connectRequest = z.strictObject({
  ...common,
  group_name: groupName.optional(),
  node_names: z.string().array().max(MAX_NETWORKS).default([]),
  network_mode: z.enum(MODES, { error: `expected one of ${MODES.join(', ')}` }),
  network_link: z.string().nullish(),
  network_vlan: z.literal('', { error: 'VLANs are not supported' }).nullish(),
  conflicts_check: z.boolean().optional(),
});
const disconnectRequest = z.strictObject({
  ...common,
  group_name: groupName.optional(),
  node_names: z.string().array().default([]),
});

export interface RapiNetworkDependencies {
  readonly clusters: Pick<ClusterRepository, 'listNetworks' | 'listTakenAddresses'>;
  readonly index: Pick<InstanceIndex, 'list'>;
  readonly submit: Submit;
}

/** Returns Ganeti's networks. Users bound to instances see only their own addresses. */
export function networkRoutes(dependencies: RapiNetworkDependencies): readonly RapiRoute[] {
  const { submit } = dependencies;
  const find = async ({ user, params }: RapiRequest): Promise<NetworkInfo> => {
    const name = params['name'] ?? '';
    const found = (await listNetworks(dependencies, user)).find((one) => one.name === name);
    if (found === undefined) throw new RapiFailure(404, `there is no network '${name}'`);
    return found;
  };
  const of = ({ params }: RapiRequest): string => params['name'] ?? '';
  return [
    readRoute('/2/networks', async ({ user, query }) => {
      const all = await listNetworks(dependencies, user);
      if (isSet(query, 'bulk')) return all.map((one) => pickFields(networkFields, one));
      return all.map(({ name }) => ({ name, uri: `/2/networks/${name}` }));
    }),
    readRoute('/2/networks/:name', async (request) =>
      pickFields(networkFields, await find(request)),
    ),
    readRoute('/2/networks/:name/tags', async (request) => (await find(request)).tags),
    submitRoute(submit, 'POST', '/2/networks', ({ body }) => {
      const given = parseInput(createRequest, body);
      return {
        ...{ opcode: 'NETWORK_ADD', name: given.network_name, network: given.network },
        ...{ gateway: given.gateway ?? undefined, macPrefix: given.mac_prefix ?? undefined },
        ...{ addReserved: given.add_reserved_ips ?? [], tags: given.tags },
      };
    }),
    submitRoute(submit, 'PUT', '/2/networks/:name/modify', (request) => {
      const given = parseInput(modifyRequest, request.body);
      return {
        ...{ opcode: 'NETWORK_SET_PARAMS', name: of(request) },
        ...{ gateway: given.gateway, macPrefix: given.mac_prefix },
        addReserved: given.add_reserved_ips ?? [],
        removeReserved: given.remove_reserved_ips ?? [],
      };
    }),
    submitRoute(submit, 'PUT', '/2/networks/:name/connect', (request) => {
      const given = parseInput(connectRequest, request.body);
      const { network_mode: mode, network_link: link, node_names: nodes } = given;
      const connection = mode === 'nat' ? { mode } : { mode, link: link ?? '' };
      return { opcode: 'NETWORK_CONNECT', name: of(request), nodes, connection };
    }),
    submitRoute(submit, 'PUT', '/2/networks/:name/disconnect', (request) => {
      const { node_names: nodes } = parseInput(disconnectRequest, request.body ?? {});
      return { opcode: 'NETWORK_DISCONNECT', name: of(request), nodes };
    }),
    submitRoute(submit, 'PUT', '/2/networks/:name/tags', (request) => {
      return {
        ...{ opcode: 'NETWORK_SET_PARAMS', name: of(request) },
        addTags: request.query.getAll('tag'),
      };
    }),
    submitRoute(submit, 'DELETE', '/2/networks/:name/tags', (request) => {
      return {
        ...{ opcode: 'NETWORK_SET_PARAMS', name: of(request) },
        removeTags: request.query.getAll('tag'),
      };
    }),
    submitRoute(submit, 'DELETE', '/2/networks/:name', (request) => {
      return { opcode: 'NETWORK_REMOVE', name: of(request) };
    }),
  ];
}

/** Lists networks for a user. A bound user sees the addresses of the user's instances only. */
export async function listNetworks(
  dependencies: Pick<RapiNetworkDependencies, 'clusters' | 'index'>,
  { scope }: RapiUser,
): Promise<readonly NetworkInfo[]> {
  const [networks, records] = await Promise.all([
    listNetworkInfos(dependencies),
    dependencies.index.list(),
  ]);
  if (scope === null) return networks;
  const seen = new Set(records.filter((one) => isWithin(scope, one)).map(({ name }) => name));
  return networks.map((network) => ({
    ...network,
    ...{ reserved: [], connections: {} },
    addresses: network.addresses.filter(({ instance }) => seen.has(instance)),
  }));
}
