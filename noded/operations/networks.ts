import { randomUUID } from 'node:crypto';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { MAX_NETWORKS, MAX_RESERVED, type NetworkRecord } from '#shared/contract/network.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError, tellableMessage } from '#shared/errors/app-error.ts';
import type { JobHandler } from '../jobs/job-handler.ts';
import { compareAddresses, requireGateway, requireHost } from '../records/address-pool.ts';
import { requireLink } from '../net/tenant/nic-taps.ts';
import { networksOf } from '../records/named-records.ts';
import { networkExists } from '../records/network-repository.ts';
import { noNode } from '../records/node-registry.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

type Network<Needed extends keyof OperationDependencies> = Pick<OperationDependencies, Needed>;

export function addNetworkHandler({
  clusters,
}: Network<'clusters'>): JobHandler<OpcodeOf<'NETWORK_ADD'>> {
  return {
    prepare: async ({ name, network, gateway = null, macPrefix = null, addReserved, tags }) => {
      const known = await clusters.listNetworks();
      if (known.some((one) => one.name === name)) throw networkExists(name);
      if (known.length >= MAX_NETWORKS) {
        throw new AppError('VALIDATION', `there are already ${known.length} networks`, {
          hint: `The limit is ${MAX_NETWORKS}. Remove one: gnt-network remove NAME`,
        });
      }
      const record = requireSound({
        ...{ schema: 1, name, uuid: randomUUID(), network, gateway, macPrefix },
        ...{ reserved: ordered(addReserved), tags: [...new Set(tags)], connections: {} },
      });
      return async () => {
        await clusters.createNetwork(record);
        return { name, uuid: record.uuid };
      };
    },
  };
}

export function modifyNetworkHandler({
  clusters,
}: Network<'clusters'>): JobHandler<OpcodeOf<'NETWORK_SET_PARAMS'>> {
  return {
    prepare: async (opcode) => {
      const { name } = opcode;
      // Runs again after each conflicting write: giving an address to a NIC writes the network,
      // too.
      const change = async (former: NetworkRecord): Promise<NetworkRecord> => {
        const changed = changeNetwork(former, opcode);
        await refuseTaken(former, changed, clusters);
        return changed;
      };
      await change(await clusters.loadNetwork(name));
      return async () => {
        await clusters.updateNetwork(name, change);
        return { name };
      };
    },
  };
}

/**
 * Connects a network. Other nodes follow by themselves. If such a node lacks something, its log and
 * the next start of an instance there report it.
 */
export function connectNetworkHandler(
  dependencies: Network<'clusters' | 'nodeName' | 'nat'> & {
    readonly nodes: Pick<OperationDependencies['nodes'], 'names'>;
  },
): JobHandler<OpcodeOf<'NETWORK_CONNECT'>> {
  const { clusters, nodes, nodeName, nat } = dependencies;
  return {
    prepare: async ({ name, nodes: given, connection }) => {
      const network = await clusters.loadNetwork(name);
      const chosen = await chooseNodes(given, nodes);
      const change = (current: NetworkRecord): NetworkRecord => {
        refuseOtherMode(current, connection.mode);
        // Refuse here: other nodes notice it only after the job has ended.
        if (connection.mode === 'nat') requireGateway(current);
        const added = chosen.map((node) => [node, connection] as const);
        return {
          ...current,
          connections: { ...current.connections, ...Object.fromEntries(added) },
        };
      };
      change(network);
      if (chosen.includes(nodeName)) {
        if (connection.mode === 'bridged') requireLink(connection.link);
        else await nat.check(network);
      }
      return async () => {
        await clusters.updateNetwork(name, change);
        try {
          await nat.settle(name);
        } catch (error) {
          await disconnectAgain(error, { network, chosen }, dependencies);
        }
        return { name, nodes: chosen };
      };
    },
  };
}

/**
 * Reverts the new connections, and keeps connections that other jobs have made meanwhile.
 * @throws the original error, or NETWORK_SETUP if the network stays connected
 */
async function disconnectAgain(
  error: unknown,
  { network, chosen }: { readonly network: NetworkRecord; readonly chosen: readonly string[] },
  { clusters, nat }: Network<'clusters' | 'nat'>,
): Promise<never> {
  const { name, connections } = network;
  try {
    await clusters.updateNetwork(name, (current) => {
      const kept = Object.entries(current.connections).filter(([node]) => !chosen.includes(node));
      const former = Object.entries(connections).filter(([node]) => chosen.includes(node));
      return { ...current, connections: Object.fromEntries([...kept, ...former]) };
    });
  } catch (cause) {
    throw new AppError(
      'NETWORK_SETUP',
      `network '${name}' stays connected: ${tellableMessage(cause)}`,
      {
        details: { name, failure: tellableMessage(error) },
        hint: `Connecting failed (${tellableMessage(error)}): gnt-network disconnect ${name}`,
        cause: error,
      },
    );
  }
  await nat.follow();
  throw error;
}

export function disconnectNetworkHandler({
  clusters,
  instances,
  nat,
}: Network<'clusters' | 'instances' | 'nat'>): JobHandler<OpcodeOf<'NETWORK_DISCONNECT'>> {
  return {
    prepare: async ({ name, nodes: given }) => {
      const change = async (network: NetworkRecord): Promise<NetworkRecord> => {
        const connected = Object.keys(network.connections);
        const nodes = given.length === 0 ? connected : given;
        const stranger = nodes.find((node) => !connected.includes(node));
        if (stranger !== undefined || nodes.length === 0)
          throw notConnected(name, stranger, connected);
        await refuseUsed(name, instances, nodes);
        const left = Object.entries(network.connections).filter(([node]) => !nodes.includes(node));
        return { ...network, connections: Object.fromEntries(left) };
      };
      await change(await clusters.loadNetwork(name));
      return async () => {
        await clusters.updateNetwork(name, change);
        await nat.settle(name);
        return { name };
      };
    },
  };
}

export function removeNetworkHandler({
  clusters,
  instances,
}: Network<'clusters' | 'instances'>): JobHandler<OpcodeOf<'NETWORK_REMOVE'>> {
  return {
    prepare: async ({ name }) => {
      const refuse = async (): Promise<void> => {
        const { connections } = await clusters.loadNetwork(name);
        const nodes = Object.keys(connections);
        if (nodes.length > 0) {
          throw new AppError('CONFLICT', `network '${name}' is connected on ${nodes.join(', ')}`, {
            details: { name, nodes },
            hint: `Disconnect it first: gnt-network disconnect ${name}`,
          });
        }
        await refuseUsed(name, instances);
        const { launchDefaults } = await clusters.load();
        if (launchDefaults?.net?.split(',').includes(`network=${name}`) === true) {
          throw new AppError('CONFLICT', `network '${name}' is the default network`, {
            details: { name },
            hint: 'Unset it first: gnt-cluster modify --default-network none',
          });
        }
      };
      await refuse();
      return async () => {
        await clusters.removeNetwork(name, refuse);
        return { name };
      };
    },
  };
}

function changeNetwork(
  network: NetworkRecord,
  { name, gateway, macPrefix, ...lists }: OpcodeOf<'NETWORK_SET_PARAMS'>,
): NetworkRecord {
  const foreign = lists.removeReserved.find((ip) => !network.reserved.includes(ip));
  if (foreign !== undefined)
    throw new AppError('VALIDATION', `${foreign} is not reserved in network '${name}'`);
  const connected = Object.values(network.connections).some(({ mode }) => mode === 'nat');
  if (gateway !== undefined && gateway !== network.gateway && connected) {
    throw new AppError(
      'CONFLICT',
      `network '${name}' is connected, and its nodes act as its gateway`,
      {
        details: { name },
        hint: `Disconnect it first: gnt-network disconnect ${name}`,
      },
    );
  }
  return requireSound({
    ...network,
    gateway: gateway === undefined ? network.gateway : gateway,
    macPrefix: macPrefix === undefined ? network.macPrefix : macPrefix,
    reserved: ordered([
      ...network.reserved.filter((ip) => !lists.removeReserved.includes(ip)),
      ...lists.addReserved,
    ]),
    tags: [...new Set([...network.tags, ...lists.addTags]).difference(new Set(lists.removeTags))],
  });
}

/** @throws AppError VALIDATION */
function requireSound(network: NetworkRecord): NetworkRecord {
  const { name, gateway, reserved } = network;
  for (const ip of [...(gateway === null ? [] : [gateway]), ...reserved]) requireHost(network, ip);
  if (reserved.length <= MAX_RESERVED) return network;
  throw new AppError(
    'VALIDATION',
    `network '${name}' would have ${reserved.length} reserved addresses`,
    {
      hint: `The limit is ${MAX_RESERVED}.`,
    },
  );
}

/**
 * Refuses to reserve an address of an instance, or to make it the gateway.
 * @throws AppError CONFLICT
 */
async function refuseTaken(
  former: NetworkRecord,
  { name, gateway, reserved }: NetworkRecord,
  clusters: OperationDependencies['clusters'],
): Promise<void> {
  const held = gateway === null ? reserved : [...reserved, gateway];
  const asked = held.filter((ip) => ip !== former.gateway && !former.reserved.includes(ip));
  if (asked.length === 0) return;
  const taken = await clusters.listTakenAddresses();
  const one = taken.find(({ network, ip }) => network === name && asked.includes(ip));
  if (one === undefined) return;
  throw new AppError('CONFLICT', `${one.ip} of network '${name}' belongs to an instance`, {
    details: { network: name, ip: one.ip },
    hint: `Show the owner: gnt-network info ${name}`,
  });
}

async function chooseNodes(
  given: readonly string[],
  nodes: Pick<OperationDependencies['nodes'], 'names'>,
): Promise<readonly string[]> {
  const names = await nodes.names();
  for (const node of given) if (!names.includes(node)) throw noNode(node, names);
  return given.length === 0 ? names : given;
}

/**
 * Refuses a second mode: an instance that moves keeps its address and how its guest gets it.
 * @throws AppError CONFLICT
 */
function refuseOtherMode({ name, connections }: NetworkRecord, mode: 'bridged' | 'nat'): void {
  const other = Object.entries(connections).find(([, connection]) => connection.mode !== mode);
  if (other === undefined) return;
  const [node, connection] = other;
  throw new AppError(
    'CONFLICT',
    `network '${name}' is connected in mode ${connection.mode} on ${node}`,
    {
      details: { name, node },
      hint: `Disconnect it first (gnt-network disconnect ${name} ${node}): the mode is the same on all nodes.`,
    },
  );
}

/** @throws AppError CONFLICT */
async function refuseUsed(
  name: string,
  instances: Pick<OperationDependencies['instances'], 'list'>,
  nodes?: readonly string[],
): Promise<void> {
  const isIn = ({ nics, partsOfRun }: InstanceRecord): boolean =>
    networksOf([...nics, ...(partsOfRun?.nics ?? [])]).has(name);
  const users = (await instances.list()).filter(
    (one) => isIn(one) && (nodes?.includes(one.primaryNode) ?? true),
  );
  if (users.length === 0) return;
  const names = users.map((user) => user.name);
  throw new AppError('CONFLICT', `network '${name}' has NICs of ${names.join(', ')}`, {
    details: { name, instances: names },
    hint: `Move them to another network: gnt-instance modify --net N:network=OTHER,ip=pool (or N:remove) ${names[0] ?? 'INSTANCE'}`,
  });
}

function notConnected(
  name: string,
  stranger: string | undefined,
  connected: readonly string[],
): AppError {
  const where = stranger === undefined ? 'on no node' : `not on ${stranger}`;
  const there = connected.length === 0 ? 'none' : connected.join(', ');
  return new AppError('CONFLICT', `network '${name}' is connected ${where}`, {
    details: { name },
    hint: `Its nodes: ${there}`,
  });
}

function ordered(addresses: readonly string[]): string[] {
  return [...new Set(addresses)].sort(compareAddresses);
}
