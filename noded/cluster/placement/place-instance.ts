import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { UnreachableNode } from '../peers/ask-peer.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { InstanceIndex } from '../../records/instance-index.ts';
import { networksOf } from '../../records/named-records.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import { isOsMissing, isPassedOn, namedOfThisHost, wantedBy } from './admitted-jobs.ts';
import {
  chooseNode,
  describeChoice,
  exclusivePrefixes,
  noNodeFits,
  type Candidate,
  type Choice,
  type Share,
  type Wanted,
} from './choose-node.ts';
import { shareOf, type NodeRoom } from './node-room.ts';
import type { NodeFacts, RunningElsewhere } from '../membership/running-elsewhere.ts';

export interface PlacementDependencies {
  readonly nodeName: string;
  readonly room: Pick<NodeRoom, 'candidate'>;
  readonly nodes: Pick<NodeRegistry, 'list'>;
  readonly index: Pick<InstanceIndex, 'list'>;
  readonly elsewhere: Pick<RunningElsewhere, 'facts'>;
  readonly clusters: Pick<ClusterRepository, 'load' | 'listNetworks'>;
}

/** Limits the nodes that are asked in turn after refusals. */
const MAX_TRIES = 32;

/**
 * Creates an instance on a node with room. The chosen node checks again, since its report is
 * seconds old. After a refusal the next node is chosen.
 * @param options `isBound`: the user may not learn the capacity of hosts
 * @param make on a node; `placement`: the reasons, or undefined without a choice
 * @throws AppError NO_ROOM with every node's reasons, or the node's refusal
 */
export async function placeInstance<T>(
  opcode: OpcodeOf<'INSTANCE_CREATE'>,
  options: { readonly isBound: boolean },
  make: (node: string, placement: readonly string[] | undefined) => Promise<T>,
  dependencies: PlacementDependencies,
): Promise<T> {
  const { nodeName } = dependencies;
  const wanted = wantedBy(opcode);
  // Files of this host exist only here, and a single node needs no choice.
  if (wanted === null || namedOfThisHost(opcode) !== undefined) return make(nodeName, undefined);
  if ((await dependencies.nodes.list()).length <= 1) return make(nodeName, undefined);
  return placeWhereFits(wanted, { ...options, except: new Map() }, make, dependencies);
}

/**
 * Tries nodes with room in turn, while they refuse for lack of it.
 * @param options `except`: nodes that are not asked, with the reason
 * @throws as `placeInstance`
 */
export async function placeWhereFits<T>(
  wanted: Wanted,
  options: { readonly isBound: boolean; readonly except: ReadonlyMap<string, string> },
  make: (node: string, placement: readonly string[]) => Promise<T>,
  dependencies: PlacementDependencies,
): Promise<T> {
  const { nodeName, clusters } = dependencies;
  const exclusive = exclusivePrefixes((await clusters.load()).tags ?? []);
  const refused = new Map([...(await listUnconnected(wanted, dependencies)), ...options.except]);
  const errors: AppError[] = [];
  for (;;) {
    const candidates = await listCandidates(dependencies);
    const choice = chooseNode(candidates, wanted, { exclusive, asked: nodeName, refused });
    if (choice.node === null || errors.length >= MAX_TRIES) {
      throw refusalOf(wanted.name, choice, errors, options);
    }
    try {
      const lines = options.isBound ? [`placed on ${choice.node}`] : describeChoice(choice);
      return await make(choice.node, lines);
    } catch (error) {
      // Other failures are not retried elsewhere: the node may already have made the job.
      if (!isPassedOn(error) && !(error instanceof UnreachableNode)) throw error;
      refused.set(choice.node, error.message);
      errors.push(error);
    }
  }
}

/**
 * Returns nodes that lack a network of the NICs, by the records. A network without nodes is refused
 * by the job.
 */
async function listUnconnected(
  { nics = [] }: Wanted,
  { nodes, clusters }: PlacementDependencies,
): Promise<ReadonlyMap<string, string>> {
  const names = networksOf(nics);
  if (names.size === 0) return new Map();
  const networks = (await clusters.listNetworks()).filter(({ name }) => names.has(name));
  const refusals = (await nodes.list()).flatMap(({ name: node }) => {
    const missing = networks.filter(({ connections }) => ownValue(connections, node) === undefined);
    const told = missing.map(({ name }) => `network '${name}' is not connected there`);
    return told.length === 0 ? [] : [[node, told.join('; ')] as const];
  });
  return new Map(refusals);
}

function refusalOf(
  name: string,
  choice: Choice,
  errors: readonly AppError[],
  options: { readonly isBound: boolean; readonly except: ReadonlyMap<string, string> },
): AppError {
  const [first] = errors;
  // All nodes lack the OS, not room.
  const asked = choice.against.size - options.except.size;
  if (first !== undefined && errors.length === asked && errors.every(isOsMissing)) return first;
  const told = noNodeFits(name, choice);
  if (!options.isBound) return told;
  return new AppError('NO_ROOM', `no node has room for '${name}'`, {
    details: { name },
    hint: 'Ask for less, or ask an administrator.',
  });
}

async function listCandidates({
  nodeName,
  room,
  nodes,
  index,
  elsewhere,
}: PlacementDependencies): Promise<readonly Candidate[]> {
  const [own, listed, facts, instances] = await Promise.all([
    room.candidate(),
    nodes.list(),
    elsewhere.facts(),
    index.list(),
  ]);
  const others = listed.filter(({ name }) => name !== nodeName);
  const taken = new Map<string, Share[]>(others.map(({ name }) => [name, []]));
  for (const instance of instances) taken.get(instance.primaryNode)?.push(shareOf(instance));
  return [
    own,
    ...others.map(({ name, flags }) => ({
      ...{ name, flags, taken: taken.get(name) ?? [] },
      ...roomTold(facts.get(name)),
    })),
  ];
}

function roomTold(facts: NodeFacts | undefined): Pick<Candidate, 'room' | 'silence'> {
  if (facts?.state === 'told') return { room: facts.room };
  return {
    room: null,
    silence: facts?.state === 'failing' ? 'it answers with an error' : 'it does not answer',
  };
}
