import { dryRunAccepted, jobSubmitted } from '#shared/contract/api.ts';
import { jobEvent, type JobEvent, type JobRecord } from '#shared/contract/job.ts';
import type { Opcode, OpcodeOf } from '#shared/contract/opcode.ts';
import { locateEndpoint } from '#shared/contract/locate-endpoint.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { readLines } from '#shared/text/lines.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { InstanceRepository } from '../records/instance-repository.ts';
import type { Preview } from '../jobs/job-handler.ts';
import type { JobLayer } from '../jobs/job-service.ts';
import { namesInstance, traitsOf } from '../jobs/opcode-traits.ts';
import { createMigrationTargetClient } from './migration/migration-target-client.ts';
import type { MigrationTarget } from './migration/migration-target-contract.ts';
import { wantedOf } from './placement/node-room.ts';
import type { Membership } from './membership/membership.ts';
import type { Overview } from './membership/overview.ts';
import {
  placeInstance,
  placeWhereFits,
  type PlacementDependencies,
} from './placement/place-instance.ts';
import { askPeer, requestPeer, throwRefusal, type Peers } from './peers/ask-peer.ts';
import { noNode, type NodeRegistry } from '../records/node-registry.ts';

export interface ClusterJobsDependencies {
  readonly nodeName: string;
  readonly peers: Peers;
  readonly nodes: NodeRegistry;
  readonly instances: InstanceRepository;
  readonly overview: Pick<Overview, 'orphans'>;
  readonly membership: Pick<Membership, 'removedAtMs'>;
  readonly placement: PlacementDependencies;
  /** This node as the target of a migration. */
  readonly migrationTarget: Pick<MigrationTarget, 'check'>;
}

const MAX_EVENT_CHARACTERS = 4 * MIB;
/**
 * Time limit for a node's answer whether it accepts an instance. The node also asks repositories.
 */
const CHECK_TIMEOUT_MS = 30_000;

/** Runs each job on the node of its instance, and asks other nodes for the jobs that they run. */
export function clusterJobs(dependencies: ClusterJobsDependencies): JobLayer {
  const { nodeName, peers } = dependencies;
  /** Returns the other node that runs a job; undefined for an ended job or one of this node. */
  const runnerOf = ({ node, endedAtMs }: JobRecord): string | undefined =>
    endedAtMs !== null || node === nodeName ? undefined : node;
  return (own) => ({
    submit: async (opcode, options = {}) => {
      const { isDryRun, submitter } = options;
      const submitTo: Make<number> = async (node, placement, asked) => {
        if (node === nodeName) return own.submit(asked, { ...options, placement });
        const query = {
          ...(isDryRun === true && { 'dry-run': 'job' as const }),
          ...(submitter && { submitter: JSON.stringify(submitter) }),
          ...(placement && { placement: JSON.stringify(placement) }),
        };
        const answer = await askPeer(peers, node, 'POST /v1/jobs', { body: asked, query });
        return jobSubmitted.parse(answer).id;
      };
      const isBound = submitter !== undefined && submitter.scope !== null;
      return onItsNode(opcode, submitTo, isBound, dependencies);
    },
    dryRun: (opcode, signal) => {
      const tryOn: Make<Preview> = async (node, _placement, asked) => {
        if (node === nodeName) return own.dryRun(asked, signal);
        const query = { 'dry-run': '1' } as const;
        const answer = await askPeer(peers, node, 'POST /v1/jobs', { body: asked, query, signal });
        const { hooks } = dryRunAccepted.parse(answer);
        return hooks ? { hooks } : {};
      };
      return onItsNode(opcode, tryOn, false, dependencies);
    },
    cancel: async (id) => {
      const node = runnerOf(await own.get(id));
      if (node === undefined) return own.cancel(id);
      await askPeer(peers, node, 'DELETE /v1/jobs/{id}', { id });
    },
    get: async (id) => {
      const stored = await own.get(id);
      const node = runnerOf(stored);
      if (node === undefined) return stored;
      try {
        return await askPeer(peers, node, 'GET /v1/jobs/{id}', { id });
      } catch (error) {
        // The stored job lacks the log, which is stored at its end.
        if (isAppError(error, 'NODE_UNREACHABLE') || isAppError(error, 'NODE_OFFLINE'))
          return stored;
        throw error;
      }
    },
    async *watch(id, signal) {
      const node = runnerOf(await own.get(id));
      if (node === undefined) yield* own.watch(id, signal);
      else yield* watchPeer(peers, node, id, signal);
    },
  });
}

/** @param asked the operation, with the chosen node */
type Make<T> = (
  node: string,
  placement: readonly string[] | undefined,
  asked: Opcode,
) => Promise<T>;

/** Places new and moving instances if no node is given. Any other operation goes to its node. */
async function onItsNode<T>(
  opcode: Opcode,
  make: Make<T>,
  isBound: boolean,
  dependencies: ClusterJobsDependencies,
): Promise<T> {
  const { membership, placement } = dependencies;
  const isPlaced = opcode.opcode === 'INSTANCE_CREATE' && opcode.node === undefined;
  const isMember = membership.removedAtMs() === null;
  if (isPlaced && isMember) {
    const makeOn = (node: string, lines: readonly string[] | undefined): Promise<T> =>
      make(node, lines, opcode);
    return placeInstance(opcode, { isBound }, makeOn, placement);
  }
  if (opcode.opcode === 'INSTANCE_FAILOVER' && isMember)
    return placeFailover(opcode, isBound, make, dependencies);
  const owner = await nodeFor(opcode, dependencies);
  const goes =
    opcode.opcode === 'INSTANCE_MOVE' ||
    (opcode.opcode === 'INSTANCE_MIGRATE' && opcode.cleanup !== true);
  if (goes && opcode.node === undefined && isMember)
    return placeMove(opcode, { owner, isBound }, make, dependencies);
  return make(owner, undefined, opcode);
}

/**
 * Places a move. Each chosen node checks it before the job is made, and the job checks again. A
 * missing instance is refused by the job.
 */
async function placeMove<T>(
  opcode: OpcodeOf<'INSTANCE_MOVE' | 'INSTANCE_MIGRATE'>,
  { owner, isBound }: { readonly owner: string; readonly isBound: boolean },
  make: Make<T>,
  { nodeName, peers, instances, migrationTarget, placement }: ClusterJobsDependencies,
): Promise<T> {
  const instance = await instances.findByName(opcode.name);
  const moveTo = async (node: string): Promise<T> => {
    const signal = AbortSignal.timeout(CHECK_TIMEOUT_MS);
    const target = node === nodeName ? migrationTarget : createMigrationTargetClient(peers, node);
    await target.check(instance.uuid, signal);
    return make(owner, undefined, { ...opcode, node });
  };
  const except = new Map([[owner, 'the instance exists']]);
  return placeWhereFits(wantedOf(instance), { isBound, except }, moveTo, placement);
}

/** Places a failover on the node that takes the instance, which checks it first as for a move. */
async function placeFailover<T>(
  opcode: OpcodeOf<'INSTANCE_FAILOVER'>,
  isBound: boolean,
  make: Make<T>,
  { nodeName, peers, nodes, instances, migrationTarget, placement }: ClusterJobsDependencies,
): Promise<T> {
  const instance = await instances.findByName(opcode.name);
  const takeOn = async (node: string, lines?: readonly string[]): Promise<T> => {
    const signal = AbortSignal.timeout(CHECK_TIMEOUT_MS);
    const target = node === nodeName ? migrationTarget : createMigrationTargetClient(peers, node);
    await target.check(instance.uuid, signal);
    return make(node, lines, { ...opcode, node });
  };
  if (opcode.node !== undefined) {
    const names = await nodes.names();
    if (!names.includes(opcode.node)) throw noNode(opcode.node, names);
    return takeOn(opcode.node);
  }
  const except = new Map([[instance.primaryNode, 'the instance existed']]);
  return placeWhereFits(wantedOf(instance), { isBound, except }, takeOn, placement);
}

/** Returns the node of an operation. A missing instance is refused by a job of this node. */
async function nodeFor(
  opcode: Opcode,
  { nodeName, nodes, instances, overview, membership }: ClusterJobsDependencies,
): Promise<string> {
  // A removed node must not ask others. Its own job refuses the operation.
  if (membership.removedAtMs() !== null) return nodeName;
  if (opcode.opcode === 'INSTANCE_CREATE') {
    const wanted = opcode.node ?? nodeName;
    const names = await nodes.names();
    if (names.includes(wanted)) return wanted;
    throw noNode(wanted, names);
  }
  if (!namesInstance(opcode)) return nodeName;
  const { orphan } = traitsOf(opcode);
  const { name } = opcode;
  try {
    // An orphan may have the name of an instance that is now on another node.
    if (orphan !== 'always') return (await instances.findByName(name)).primaryNode;
  } catch (error) {
    if (!isAppError(error, 'INSTANCE_NOT_FOUND')) throw error;
  }
  if (orphan === undefined) return nodeName;
  const meant = (await overview.orphans()).filter((one) => one.uuid === name || one.name === name);
  return (meant.find(({ node }) => node === nodeName) ?? meant[0])?.node ?? nodeName;
}

async function* watchPeer(
  peers: Peers,
  node: string,
  id: number,
  signal: AbortSignal,
): AsyncGenerator<JobEvent> {
  const request = locateEndpoint('GET /v1/jobs/{id}/events', { id, signal });
  const answer = await requestPeer(peers, node, request);
  if (answer.statusCode !== 200) await throwRefusal(answer, node);
  for await (const line of readLines(answer, MAX_EVENT_CHARACTERS))
    yield jobEvent.parse(JSON.parse(line));
}
