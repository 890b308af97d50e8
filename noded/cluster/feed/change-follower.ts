import { every } from '#shared/clock/every.ts';
import type { JobSummary, NodesEvent, ObjectsEvent } from '#shared/contract/cluster-event.ts';
import type { RunningMachine } from '#shared/contract/instance.ts';
import { NO_FLAGS } from '#shared/contract/node-flags.ts';
import type { Logger } from '#shared/log/log.ts';
import type { Store, Watch } from '#shared/store/store.ts';
import { JOBS } from '../../jobs/job-entry.ts';
import { INSTANCES } from '../../records/instance-repository.ts';
import { type ListedFlags, NODES } from '../../records/node-registry.ts';
import type { SummaryParts } from '../membership/overview.ts';
import type { NodeFacts } from '../membership/running-elsewhere.ts';
import { ChangeRing } from './change-ring.ts';
import { type ChangedInstances, findChanged } from './find-changed.ts';

/** A change of the lists of the cluster. After `reset`, all of them must be read again. */
export type ClusterChange =
  | ({ readonly event: 'instances' } & ChangedInstances)
  | {
      readonly event: 'jobs';
      readonly changed: readonly JobSummary[];
      readonly removed: readonly number[];
    }
  | { readonly event: 'nodes'; readonly nodes: NodesEvent['nodes'] }
  | { readonly event: 'objects'; readonly changed: ObjectsEvent['changed'] }
  | { readonly event: 'reset' };

export interface FeedSources {
  /** Returns whether a node name in a record means this node. */
  readonly owns: (node: string) => boolean;
  readonly store: Pick<Store, 'watch'>;
  readonly summaryParts: () => Promise<Iterable<SummaryParts>>;
  /** Returns the running instances of this node. */
  readonly listRunning: () => readonly RunningMachine[];
  /** Returns the reports of other nodes. A report is the same object until the next one. */
  readonly facts: () => Promise<ReadonlyMap<string, NodeFacts>>;
  readonly listNodes: () => Promise<readonly ListedFlags[]>;
  /** Returns the readable jobs of some ids. */
  readonly loadJobs: (ids: readonly number[]) => Promise<readonly JobSummary[]>;
  readonly logger: Logger;
}

/** Changes of this time are one message, so that a reader gets at most four per second. */
const LOOK_MS = 250;
/** Messages for readers that return. */
const MAX_CHANGES = 256;
/** More changes at once are a reset, since the lists are then shorter to read. */
const MAX_AT_ONCE = 500;

const OBJECTS = [
  'cluster',
  'os',
  'networks',
  'profiles',
  'bootenvs',
  'boot-templates',
  'boot-params',
] as const satisfies ObjectsEvent['changed'];

/**
 * Starts to follow all changes of the cluster.
 * @throws AppError STORE_UNAVAILABLE
 */
export async function startFollower(sources: FeedSources): Promise<ChangeFollower> {
  const follower = new ChangeFollower(sources);
  try {
    await follower.begin();
    return follower;
  } catch (error) {
    follower[Symbol.dispose]();
    throw error;
  }
}

/**
 * INVARIANT: a change that is not in the ring yet is noted in a field, so that a failed look is
 * repeated without a loss.
 */
export class ChangeFollower implements Disposable {
  readonly ring = new ChangeRing<ClusterChange>(MAX_CHANGES);
  readonly #sources: FeedSources;
  readonly #watches: readonly Watch[];
  readonly #known = new Map<string, SummaryParts>();
  readonly #waiting = new Set<() => void>();
  #looks: Disposable | undefined;
  /** A record of an instance changed. */
  #areInstancesNew = true;
  /** A record of a node changed. */
  #areNodesNew = true;
  /** The store was away: unknown records changed. */
  #isAllNew = false;
  #isListening = false;
  #jobs = new Set<number>();
  readonly #objects = new Set<ObjectsEvent['changed'][number]>();
  #flags: readonly ListedFlags[] = [];
  #toldNodes = '';
  #ownRunning = '';
  #facts: ReadonlyMap<string, NodeFacts> = new Map();

  constructor(sources: FeedSources) {
    this.#sources = sources;
    const watch = (collection: string, note: (ids: readonly string[]) => void): Watch =>
      sources.store.watch(collection, (ids) => {
        if (ids !== null) note(ids);
        else if (this.#isListening) this.#isAllNew = true;
      });
    this.#watches = [
      watch(INSTANCES, () => (this.#areInstancesNew = true)),
      watch(NODES, () => (this.#areNodesNew = true)),
      watch(JOBS, (ids) => {
        for (const id of ids) this.#jobs.add(Number(id));
      }),
      ...OBJECTS.map((name) => watch(name, () => this.#objects.add(name))),
    ];
  }

  async begin(): Promise<void> {
    await Promise.all(this.#watches.map((watch) => watch.caughtUp()));
    this.#isListening = true;
    await this.#lookAtNodes();
    findChanged(this.#known, [...(await this.#sources.summaryParts())]);
    this.#looks = every(LOOK_MS, () => this.#look());
  }

  /**
   * Waits for the next change.
   * @returns false after the time, or if the signal aborts
   */
  untilChanged(ms: number, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (isChanged: boolean): void => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', stop);
        resolve(isChanged);
      };
      const wake = (): void => settle(true);
      const stop = (): void => settle(false);
      const timer = setTimeout(stop, ms).unref();
      this.#waiting.add(wake);
      signal.addEventListener('abort', stop);
      if (signal.aborted) stop();
    });
  }

  [Symbol.dispose](): void {
    this.#looks?.[Symbol.dispose]();
    for (const watch of this.#watches) watch.end();
  }

  async #look(): Promise<void> {
    try {
      if (this.#isAllNew) this.#forget();
      await this.#lookAtNodes();
      await this.#lookAtInstances();
      await this.#lookAtJobs();
      if (this.#objects.size > 0) this.#push({ event: 'objects', changed: [...this.#objects] });
      this.#objects.clear();
    } catch (error) {
      // The next look repeats it.
      this.#sources.logger.debug('feed.not-read', { err: error });
    }
  }

  #forget(): void {
    this.#isAllNew = false;
    this.#jobs.clear();
    this.#objects.clear();
    this.#areInstancesNew = true;
    this.#areNodesNew = true;
    this.#push({ event: 'reset' });
  }

  async #lookAtNodes(): Promise<void> {
    const { owns, facts, listNodes, listRunning } = this.#sources;
    if (this.#areNodesNew) {
      this.#areNodesNew = false;
      try {
        this.#flags = await listNodes();
      } catch (error) {
        this.#areNodesNew = true;
        throw error;
      }
    }
    const running = JSON.stringify(listRunning());
    const reports = await facts();
    const isOld =
      running === this.#ownRunning &&
      reports.size === this.#facts.size &&
      [...reports].every(([node, report]) => this.#facts.get(node) === report);
    this.#ownRunning = running;
    this.#facts = reports;
    if (!isOld) this.#areInstancesNew = true;
    const nodes = this.#flags.map(({ name, flags }) => ({
      name,
      state: owns(name) ? ('up' as const) : stateOf(reports.get(name)),
      flags: { ...NO_FLAGS, ...flags },
    }));
    const told = JSON.stringify(nodes);
    if (told !== this.#toldNodes) this.#push({ event: 'nodes', nodes });
    this.#toldNodes = told;
  }

  async #lookAtInstances(): Promise<void> {
    if (!this.#areInstancesNew) return;
    this.#areInstancesNew = false;
    try {
      const all = [...(await this.#sources.summaryParts())];
      const { changed, removed } = findChanged(this.#known, all);
      const count = changed.length + removed.length;
      if (count > MAX_AT_ONCE) this.#push({ event: 'reset' });
      else if (count > 0) this.#push({ event: 'instances', changed, removed });
    } catch (error) {
      this.#areInstancesNew = true;
      throw error;
    }
  }

  async #lookAtJobs(): Promise<void> {
    if (this.#jobs.size === 0) return;
    const ids = this.#jobs;
    this.#jobs = new Set();
    try {
      if (ids.size > MAX_AT_ONCE) {
        this.#push({ event: 'reset' });
        return;
      }
      const changed = await this.#sources.loadJobs([...ids]);
      const found = new Set(changed.map(({ id }) => id));
      this.#push({ event: 'jobs', changed, removed: [...ids.difference(found)] });
    } catch (error) {
      this.#jobs = ids.union(this.#jobs);
      throw error;
    }
  }

  #push(change: ClusterChange): void {
    this.ring.push(change);
    for (const wake of [...this.#waiting]) wake();
  }
}

function stateOf(facts: NodeFacts | undefined): NodesEvent['nodes'][number]['state'] {
  if (facts === undefined) return 'silent';
  return facts.state === 'told' ? 'up' : facts.state;
}
