import type { z } from 'zod';
import {
  listedNode,
  listedOrphan,
  nodeInfo,
  osInfo,
  type ListedNode,
  type ListedOrphan,
  type NodeInfo,
  type NodeOs,
  type OsInfo,
} from '#shared/contract/api.ts';
import { instanceInfo, type InstanceInfo, type InstanceRecord } from '#shared/contract/instance.ts';
import { toError, isAppError } from '#shared/errors/app-error.ts';
import { loadInstanceInfo, type InstanceInfoSources } from '../instances/instance-info.ts';
import type { Orphans } from '../instances/orphans.ts';
import type { InstanceRepository } from '../records/instance-repository.ts';
import { askPeer, type Peers } from '../peers/ask-peer.ts';
import type { NodeRegistry } from '../records/node-registry.ts';

/** What there is and how it is, as an interface tells it. */
export interface Overview {
  /** All instances, in the order of their names. */
  instances(): Promise<readonly InstanceInfo[]>;
  /** @throws AppError INSTANCE_NOT_FOUND */
  instance(name: string): Promise<InstanceInfo>;
  nodes(): Promise<readonly ListedNode[]>;
  /** The OS definitions of each node. */
  operatingSystems(): Promise<readonly NodeOs[]>;
  /** Machines that no record accounts for, on the nodes that answer. */
  orphans(): Promise<readonly ListedOrphan[]>;
}

export interface OverviewSources extends InstanceInfoSources {
  readonly instances: InstanceRepository;
  /** Whether what a record names as its node is this one. */
  readonly owns: (node: string) => boolean;
  readonly nodeName: string;
  readonly orphans: Pick<Orphans, 'list'>;
  readonly describeNode: () => Promise<NodeInfo>;
  readonly listOs: () => Promise<OsInfo[]>;
}

/** For all nodes together: one that says nothing for so long is shown as silent. */
const ANSWER_TIMEOUT_MS = 3000;

/** Lists what this node has. */
export function createOwnOverview(sources: OverviewSources): Overview {
  const { instances, owns, nodeName, describeNode, listOs } = sources;
  return {
    instances: async () => {
      const own = (await instances.list()).filter(({ primaryNode }) => owns(primaryNode));
      const read = { ...sources, clusters: readOnce(sources.clusters) };
      return Promise.all(own.map((record) => loadInstanceInfo(record, read)));
    },
    instance: async (name) => loadInstanceInfo(await instances.findByName(name), sources),
    nodes: async () => [await describeNode()],
    operatingSystems: async () => [{ node: nodeName, operatingSystems: await listOs() }],
    orphans: () =>
      Promise.resolve(sources.orphans.list().map((one) => ({ ...one, node: nodeName }))),
  };
}

/** For one answer, in which thousands of instances ask for the same few records. */
function readOnce(clusters: InstanceInfoSources['clusters']): InstanceInfoSources['clusters'] {
  const cluster = clusters.load();
  // Whoever awaits it sees the failure; a list of no instances need not.
  cluster.catch(() => undefined);
  const settings = new Map<string, ReturnType<typeof clusters.loadOs>>();
  return {
    load: () => cluster,
    loadOs: (name) => {
      const found = settings.get(name) ?? clusters.loadOs(name);
      settings.set(name, found);
      return found;
    },
  };
}

/** Of the whole cluster: every node is asked for what it has. */
export function createClusterOverview(
  own: Overview,
  sources: OverviewSources & { readonly peers: Peers; readonly nodes: NodeRegistry },
): Overview {
  const { instances, owns, peers, nodes } = sources;
  const ask = async <T>(node: string, path: string, schema: z.ZodType<T>): Promise<T | Error> => {
    try {
      const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
      return await askPeer(peers, node, { method: 'GET', path, signal }, schema);
    } catch (error) {
      return toError(error);
    }
  };
  const otherNodes = async (): Promise<readonly string[]> =>
    (await nodes.names()).filter((name) => !owns(name));
  const describeSilent = (record: InstanceRecord): Promise<InstanceInfo> =>
    loadInstanceInfo(record, sources, 'ERROR_nodedown');
  return {
    instances: async () => {
      const records = await instances.list();
      const others = new Set(
        records.map(({ primaryNode }) => primaryNode).filter((node) => !owns(node)),
      );
      const answers = await Promise.all([
        own.instances(),
        ...[...others].map((node) => ask(node, '/v1/instances', instanceInfo.array())),
      ]);
      const told = new Map(
        answers
          .flatMap((answer) => (answer instanceof Error ? [] : answer))
          .map((info) => [info.uuid, info]),
      );
      return Promise.all(
        records.map(async (record) => told.get(record.uuid) ?? describeSilent(record)),
      );
    },
    instance: async (name) => {
      const record = await instances.findByName(name);
      if (owns(record.primaryNode)) return loadInstanceInfo(record, sources);
      const path = `/v1/instances/${name}`;
      const answer = await ask(record.primaryNode, path, instanceInfo);
      if (!(answer instanceof Error)) return answer;
      if (isAppError(answer, 'INSTANCE_NOT_FOUND')) throw answer;
      return describeSilent(record);
    },
    nodes: async () => {
      const records = await instances.list();
      const describe = async (name: string): Promise<ListedNode> => {
        const answer = await ask(name, '/v1/node', nodeInfo);
        if (!(answer instanceof Error)) return answer;
        const primary = records.filter(({ primaryNode }) => primaryNode === name);
        return listedNode.parse({ name, silent: answer.message, instances: primary.length });
      };
      const all = await Promise.all([own.nodes(), ...(await otherNodes()).map(describe)]);
      return all.flat().sort((a, b) => a.name.localeCompare(b.name));
    },
    operatingSystems: async () => {
      const describe = async (node: string): Promise<NodeOs> => {
        const answer = await ask(node, '/v1/os', osInfo.array());
        return answer instanceof Error
          ? { node, silent: answer.message }
          : { node, operatingSystems: answer };
      };
      const all = await Promise.all([
        own.operatingSystems(),
        ...(await otherNodes()).map(describe),
      ]);
      return all.flat().sort((a, b) => a.node.localeCompare(b.node));
    },
    orphans: async () => {
      const answers = await Promise.all([
        own.orphans(),
        ...(await otherNodes()).map((node) => ask(node, '/v1/orphans', listedOrphan.array())),
      ]);
      return answers.flatMap((answer) => (answer instanceof Error ? [] : answer));
    },
  };
}
