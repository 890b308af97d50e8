import { Readable } from 'node:stream';
import {
  listedNode,
  type ListedNode,
  type ListedOrphan,
  type NodeInfo,
  type NodeOs,
  type OsInfo,
} from '#shared/contract/api.ts';
import {
  type Given,
  type JsonOf,
  locateEndpoint,
  type PeerKey,
} from '#shared/contract/locate-endpoint.ts';
import {
  instanceInfo,
  type InstanceInfo,
  type InstanceRecord,
  type InstanceStatus,
  type InstanceSummary,
  type RunningMachine,
} from '#shared/contract/instance.ts';
import { othersTurn } from '#shared/clock/turns.ts';
import { isAppError, toError } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { limitSilence } from '#shared/stream/limit-silence.ts';
import { readLines } from '#shared/text/lines.ts';
import { MIB } from '#shared/units/bytes.ts';
import { statusOf } from '../../instances/describe-instance.ts';
import { loadInstanceInfo, type InstanceInfoSources } from '../../instances/instance-info.ts';
import type { Orphans } from '../../instances/machines/orphans.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import { runningMachineOf } from '../../instances/machines/watch-machines.ts';
import { askPeer, openAnswer, type Peers } from '../peers/ask-peer.ts';
import type { IndexedInstance, InstanceIndex } from '../../records/instance-index.ts';
import { beginRemoval, FAILED } from '../../records/install-states.ts';
import type { Outcomes } from '../../records/outcomes.ts';
import type { ListedFlags, NodeRegistry } from '../../records/node-registry.ts';
import { readIndexed, readOne, type IndexedRecords } from '../../records/read-indexed.ts';
import { mergeNodeReports } from './merge-node-reports.ts';
import {
  ANSWER_TIMEOUT_MS,
  stateAfter,
  type NodeFacts,
  type RunningElsewhere,
} from './running-elsewhere.ts';

/** Describes instances, nodes, OS definitions and orphans. */
export interface Overview {
  /** Yields all instances ordered by name, in slices small enough not to block other tasks. */
  instanceSlices(): AsyncIterable<readonly InstanceInfo[]>;
  /**
   * Returns the list fields of all instances ordered by name, without a request to other nodes.
   * Each is made on demand.
   */
  summaries(): Promise<Iterable<InstanceSummary>>;
  /** Returns the parts of the same summaries. Those of an unchanged record are the same object. */
  summaryParts(): Promise<Iterable<SummaryParts>>;
  /** @throws AppError INSTANCE_NOT_FOUND */
  instance(name: string): Promise<InstanceInfo>;
  nodes(): Promise<readonly ListedNode[]>;
  operatingSystems(): Promise<readonly NodeOs[]>;
  /** Running instances without a record, on the nodes that answer. */
  orphans(): Promise<readonly ListedOrphan[]>;
}

/** Sources of a summary. */
export interface SummaryParts {
  readonly instance: IndexedInstance;
  readonly running: RunningMachine | null;
  readonly status: InstanceStatus;
}

export interface OverviewSources extends InstanceInfoSources {
  readonly instances: InstanceRepository;
  readonly index: Pick<InstanceIndex, 'list' | 'doubt'>;
  readonly outcomes: Pick<Outcomes, 'removalOf'>;
  /** Returns whether a record's node name means this node. */
  readonly owns: (node: string) => boolean;
  readonly nodeName: string;
  readonly orphans: Pick<Orphans, 'list'>;
  readonly describeNode: () => Promise<NodeInfo>;
  readonly listOs: () => Promise<OsInfo[]>;
}

/** Limit of one instance: names, keys and parameters of sixteen documents. */
const MAX_LINE_CHARACTERS = 4 * MIB;

/** Describes the instances of this node. */
export function createOwnOverview(sources: OverviewSources): Overview {
  const { instances, index, outcomes, owns, nodeName, describeNode, listOs, runner } = sources;
  /** Adds a removal that could not be recorded because the store was full. */
  const current = (record: InstanceRecord): InstanceRecord => {
    const begun = outcomes.removalOf(record.uuid);
    return begun === undefined ? record : beginRemoval(record, begun.jobId, begun.beganAtMs);
  };
  const slices = (): AsyncGenerator<readonly InstanceInfo[]> => {
    const isOwn = ({ primaryNode }: IndexedInstance): boolean => owns(primaryNode);
    const read = { ...sources, clusters: readOnce(sources.clusters) };
    return describeSlices(sources, isOwn, (record) => loadInstanceInfo(current(record), read));
  };
  const summaryParts = async (): Promise<IteratorObject<SummaryParts>> =>
    Iterator.from(await index.list()).map((each) => {
      const kept = runner.running(each.uuid);
      const isGoing = outcomes.removalOf(each.uuid) !== undefined;
      const told = isGoing ? ({ ...each, ...FAILED } as const) : each;
      return partsOf(told, kept === undefined ? null : runningMachineOf(kept));
    });
  return {
    instanceSlices: slices,
    summaryParts,
    summaries: async () => (await summaryParts()).map(summarize),
    instance: async (name) => loadInstanceInfo(current(await instances.findByName(name)), sources),
    nodes: async () => [await describeNode()],
    operatingSystems: async () => [{ node: nodeName, operatingSystems: await listOs() }],
    orphans: () =>
      Promise.resolve(sources.orphans.list().map((one) => ({ ...one, node: nodeName }))),
  };
}

async function* describeSlices(
  indexed: IndexedRecords,
  isMeant: (instance: IndexedInstance) => boolean,
  describe: (record: InstanceRecord) => Promise<InstanceInfo>,
): AsyncGenerator<readonly InstanceInfo[]> {
  for await (const slice of readIndexed(indexed, isMeant)) {
    const told: InstanceInfo[] = [];
    for (const record of slice) {
      told.push(tellable(await describe(record)));
      await othersTurn();
    }
    yield told;
  }
}

/** Drops fields that the schema does not name. The result is not validated again. */
function tellable(info: InstanceInfo): InstanceInfo {
  return instanceInfo.parse(info);
}

function partsOf(instance: IndexedInstance, running: RunningMachine | null): SummaryParts {
  return { instance, running, status: statusOf(instance, running) };
}

export function summarize({ instance, running, status }: SummaryParts): InstanceSummary {
  // Drops the other fields, because rows are not validated.
  const { diskBytes, profiles, bootEnv, stoppedByJob, namedAfterJob, ...listed } = instance;
  void [diskBytes, profiles, bootEnv, stoppedByJob, namedAfterJob];
  return { ...listed, status, running: running && tellRunning(running) };
}

/** Drops the UUID, which the instance already has. */
function tellRunning(running: RunningMachine): InstanceSummary['running'] {
  const { uuid, ...told } = running;
  void uuid;
  return told;
}

/** Caches records for one answer, in which thousands of instances need the same few. */
function readOnce(clusters: InstanceInfoSources['clusters']): InstanceInfoSources['clusters'] {
  const cluster = clusters.load();
  // A list without instances never awaits it.
  cluster.catch(() => undefined);
  return {
    load: () => cluster,
    loadOs: once((name) => clusters.loadOs(name)),
    loadProfile: once((name) => clusters.loadProfile(name)),
  };
}

function once<T>(load: (name: string) => Promise<T>): (name: string) => Promise<T> {
  const loaded = new Map<string, Promise<T>>();
  return (name) => {
    const found = loaded.get(name) ?? load(name);
    loaded.set(name, found);
    return found;
  };
}

/** Describes the whole cluster by asking every node. */
export function createClusterOverview(
  own: Overview,
  sources: OverviewSources & {
    readonly peers: Peers;
    readonly nodes: NodeRegistry;
    readonly elsewhere: Pick<RunningElsewhere, 'facts'>;
  },
): Overview {
  const { instances, index, owns, peers, nodes, elsewhere, runner } = sources;
  const inTime = (): { readonly signal: AbortSignal } => ({
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
  });
  const ask = async <Key extends PeerKey>(
    node: string,
    key: Key,
    ...given: Given<Key>
  ): Promise<JsonOf<Key> | Error> => {
    try {
      return await askPeer(peers, node, key, ...given);
    } catch (error) {
      return toError(error);
    }
  };
  const otherNodes = async (): Promise<readonly string[]> =>
    (await nodes.names()).filter((name) => !owns(name));
  const describeSilent = (record: InstanceRecord, error: unknown): Promise<InstanceInfo> =>
    loadInstanceInfo(record, sources, STATUS_OF[stateAfter(error)]);
  const slices = async function* (): AsyncGenerator<readonly InstanceInfo[]> {
    const all = await index.list();
    // Records may have former names of this node.
    const ownName = sources.nodeName;
    const nodeOf = ({ primaryNode }: Pick<IndexedInstance, 'primaryNode'>): string =>
      owns(primaryNode) ? ownName : primaryNode;
    const read = { ...sources, clusters: readOnce(sources.clusters) };
    yield* mergeNodeReports(all, {
      nodeOf,
      tell: (node) => (node === ownName ? ownSlices() : readInstances(peers, node)),
      describeLeft: async ({ uuid, primaryNode }, failure) => {
        if (owns(primaryNode) && failure !== undefined) throw toError(failure);
        if (owns(primaryNode)) return [];
        const record = await readOne(sources, uuid);
        if (record === undefined || record.primaryNode !== primaryNode) return [];
        const status = STATUS_OF[stateAfter(failure ?? new Error('no report received'))];
        return [tellable(await loadInstanceInfo(record, read, status))];
      },
    });
  };
  const ownSlices = async function* (): AsyncGenerator<readonly InstanceInfo[]> {
    yield* own.instanceSlices();
  };
  const summaryParts = async (): Promise<IteratorObject<SummaryParts>> => {
    const [all, facts] = await Promise.all([index.list(), elsewhere.facts()]);
    return Iterator.from(all).map((each) => {
      if (!owns(each.primaryNode)) return partsTold(each, facts.get(each.primaryNode));
      const kept = runner.running(each.uuid);
      return partsOf(each, kept === undefined ? null : runningMachineOf(kept));
    });
  };
  return {
    instanceSlices: slices,
    summaryParts,
    summaries: async () => (await summaryParts()).map(summarize),
    instance: async (name) => {
      const record = await instances.findByName(name);
      if (owns(record.primaryNode)) return loadInstanceInfo(record, sources);
      const answer = await ask(record.primaryNode, 'GET /v1/instances/{name}', {
        name,
        ...inTime(),
      });
      if (!(answer instanceof Error)) return answer;
      if (isAppError(answer, 'INSTANCE_NOT_FOUND')) throw answer;
      return describeSilent(record, answer);
    },
    nodes: async () => {
      const counts = countBy(await index.list(), ({ primaryNode }) => primaryNode);
      const describe = async ({ name, flags }: ListedFlags): Promise<ListedNode> => {
        const answer = await ask(name, 'GET /v1/node', inTime());
        // The flags of a node of an earlier release are missing in its answer.
        if (!(answer instanceof Error)) return { ...answer, flags };
        const silent = answer.message;
        return listedNode.parse({ name, flags, silent, instances: counts.get(name) ?? 0 });
      };
      const others = (await nodes.list()).filter(({ name }) => !owns(name));
      const told = await Promise.all([own.nodes(), ...others.map(describe)]);
      return told.flat().sort((a, b) => a.name.localeCompare(b.name));
    },
    operatingSystems: async () => {
      const describe = async (node: string): Promise<NodeOs> => {
        const answer = await ask(node, 'GET /v1/os', inTime());
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
        ...(await otherNodes()).map((node) => ask(node, 'GET /v1/orphans', inTime())),
      ]);
      return answers.flatMap((answer) => (answer instanceof Error ? [] : answer));
    },
  };
}

function countBy<T>(all: readonly T[], keyOf: (one: T) => string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const one of all) counts.set(keyOf(one), (counts.get(keyOf(one)) ?? 0) + 1);
  return counts;
}

/** Status of instances whose node does not report them. */
const STATUS_OF = {
  silent: 'ERROR_nodedown',
  failing: 'ERROR_nodefails',
  offline: 'ERROR_nodeoffline',
} as const satisfies Record<ReturnType<typeof stateAfter>, InstanceStatus>;

function partsTold(instance: IndexedInstance, facts: NodeFacts | undefined): SummaryParts {
  if (facts?.state === 'told') return partsOf(instance, facts.running.get(instance.uuid) ?? null);
  // A removed node does not answer either.
  return { instance, running: null, status: STATUS_OF[facts?.state ?? 'silent'] };
}

/**
 * Reads another node's report of its own instances. It sends at least a sign of life in time,
 * however many there are.
 */
async function* readInstances(peers: Peers, node: string): AsyncGenerator<readonly InstanceInfo[]> {
  const begins = { withinMs: ANSWER_TIMEOUT_MS };
  const answer = await openAnswer(peers, node, locateEndpoint('GET /v1/own-instances'), begins);
  const lively = Readable.from(limitSilence(answer, ANSWER_TIMEOUT_MS));
  for await (const line of readLines(lively, MAX_LINE_CHARACTERS)) {
    yield [instanceInfo.parse(parseJson(line))];
    await othersTurn();
  }
}
