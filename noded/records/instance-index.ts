import { pause } from '#shared/abort/until.ts';
import { every } from '#shared/clock/every.ts';
import { localDiskBytes } from '#shared/contract/disk-template.ts';
import { instanceRecord, type InstanceRecord } from '#shared/contract/instance.ts';
import type { Logger } from '#shared/log/log.ts';
import {
  sortOut,
  type RecordProblem,
  type RecordProblems,
  type SortedOut,
} from '#shared/store/readable-records.ts';
import type { Store } from '#shared/store/store.ts';
import { INSTANCES } from './instance-repository.ts';
import { NamedOrder } from './named-order.ts';

/** The part of a record that a node keeps in memory, for lists, counts and metrics. */
export type IndexedInstance = Pick<
  InstanceRecord,
  | 'uuid'
  | 'name'
  | 'primaryNode'
  | 'osType'
  | 'adminState'
  | 'stoppedByJob'
  | 'installState'
  | 'tags'
  | 'profiles'
  | 'bootEnv'
  | 'beparams'
  | 'diskTemplate'
  | 'communication'
  | 'serialNo'
  | 'createdAtMs'
  | 'namedAfterJob'
  | 'modifiedAtMs'
> & {
  /** Total size to which its disks may grow on its node. */
  readonly diskBytes: number;
};

/**
 * Keeps the latest instances of the cluster in memory by following the store's log. For reading
 * only: changes must read the record itself.
 */
export interface InstanceIndex extends AsyncDisposable {
  /**
   * Lists all readable instances, sorted by name. Includes every change that was committed before
   * the call.
   * @throws AppError STORE_UNAVAILABLE
   */
  list(): Promise<readonly IndexedInstance[]>;
  /** Reads a record again after another reader found it unreadable. */
  doubt(uuid: string): void;
}

export interface InstanceIndexDependencies {
  readonly store: Pick<Store, 'watch' | 'scan' | 'getSome'>;
  readonly problems: RecordProblems;
  readonly logger: Logger;
  /** Called after a reading of all records, which takes much more memory than the index keeps. */
  readonly onReadWhole?: () => void;
}

const ASK_AGAIN_MS = 500;
/** Interval of full readings: a write that bypasses this program is not in the log. */
const READ_ALL_AGAIN_MS = 3_600_000;
/** Changed records per read: a few milliseconds of work. */
const READ_AT_ONCE = 32;

export function startInstanceIndex(dependencies: InstanceIndexDependencies): InstanceIndex {
  return new FollowingIndex(dependencies);
}

/**
 * INVARIANTS: one reading at a time; changes during a reading are read after it, so that the last
 * reading of a record begins after its last change.
 */
class FollowingIndex implements InstanceIndex {
  readonly #dependencies: InstanceIndexDependencies;
  readonly #watch: ReturnType<Store['watch']>;
  readonly #rereading: Disposable;
  readonly #ended = new AbortController();
  readonly #shared = new SharedParts();
  #instances = new NamedOrder<IndexedInstance>();
  #bad = new Map<string, RecordProblem>();
  /** Ids to read; null: all. */
  #changed: Set<string> | null = null;
  #reading: Promise<void> | undefined;
  /** Callers that wait until all changes so far are read. */
  #waiting: Pick<PromiseWithResolvers<void>, 'resolve' | 'reject'>[] = [];
  /** The last reading failed and was logged. */
  #isFailing = false;

  constructor(dependencies: InstanceIndexDependencies) {
    this.#dependencies = dependencies;
    const { store } = dependencies;
    this.#watch = store.watch(INSTANCES, (ids) => this.#notice(ids));
    this.#rereading = every(READ_ALL_AGAIN_MS, () => this.#notice(null));
  }

  async list(): Promise<readonly IndexedInstance[]> {
    await this.#watch.caughtUp();
    if (this.#reading !== undefined)
      await new Promise<void>((resolve, reject) => void this.#waiting.push({ resolve, reject }));
    return this.#instances.list();
  }

  doubt(uuid: string): void {
    this.#notice([uuid]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#rereading[Symbol.dispose]();
    this.#watch.end();
    this.#ended.abort();
    await this.#reading;
  }

  #notice(ids: readonly string[] | null): void {
    if (this.#ended.signal.aborted) return;
    if (ids === null) this.#changed = null;
    else for (const id of ids) this.#changed?.add(id);
    if (this.#changed?.size === 0) return;
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined;
      // Changes that arrived after the loop's last check.
      if (this.#changed === null || this.#changed.size > 0) this.#notice([]);
      if (this.#reading === undefined) for (const { resolve } of this.#waiting.splice(0)) resolve();
    });
  }

  async #readAll(): Promise<void> {
    const { signal } = this.#ended;
    while (this.#changed === null || this.#changed.size > 0) {
      const ids = this.#changed;
      this.#changed = new Set();
      const served = this.#waiting.splice(0);
      try {
        await (ids === null ? this.#readWhole() : this.#readSome(ids));
        this.#isFailing = false;
        for (const { resolve } of served) resolve();
      } catch (error) {
        // Read the failed ids again, with later changes.
        this.#changed = ids === null ? null : new Set([...ids, ...this.#changed]);
        for (const { reject } of [...served, ...this.#waiting.splice(0)]) reject(error);
        this.#dependencies.logger[this.#isFailing ? 'debug' : 'warn']('instances.not-read', {
          err: error,
        });
        this.#isFailing = true;
        await pause(ASK_AGAIN_MS, signal, { ref: false });
      }
      if (signal.aborted) return;
    }
  }

  async #readWhole(): Promise<void> {
    const instances = new NamedOrder<IndexedInstance>();
    const bad = new Map<string, RecordProblem>();
    for await (const slice of this.#dependencies.store.scan(INSTANCES)) {
      if (this.#ended.signal.aborted) return;
      this.#take(await sortOut(instanceRecord, INSTANCES, slice), instances, bad);
    }
    this.#instances = instances;
    this.#setAside(bad);
    this.#dependencies.onReadWhole?.();
  }

  async #readSome(ids: ReadonlySet<string>): Promise<void> {
    const bad = new Map(this.#bad);
    const all = [...ids];
    for (let at = 0; at < all.length; at += READ_AT_ONCE) {
      const some = all.slice(at, at + READ_AT_ONCE);
      const records = await this.#dependencies.store.getSome(INSTANCES, some);
      const found = await sortOut(instanceRecord, INSTANCES, records);
      for (const id of some) {
        this.#instances.delete(id);
        bad.delete(id);
      }
      this.#take(found, this.#instances, bad);
    }
    if (bad.size > 0 || this.#bad.size > 0) this.#setAside(bad);
  }

  #setAside(bad: Map<string, RecordProblem>): void {
    this.#bad = bad;
    this.#dependencies.problems.replace(INSTANCES, [...bad.values()]);
  }

  #take(
    found: SortedOut<InstanceRecord>,
    instances: NamedOrder<IndexedInstance>,
    bad: Map<string, RecordProblem>,
  ): void {
    instances.add(found.readable.map(({ value }) => this.#shared.indexed(value)));
    for (const problem of found.bad) bad.set(problem.id, problem);
  }
}

/** Above the distinct parts of any cluster. Dropped parts are made again. */
const MAX_SHARED = 10_000;

/** Keeps equal parts of thousands of instances in memory once. */
class SharedParts {
  readonly #parts = new Map<string, unknown>();

  indexed(record: InstanceRecord): IndexedInstance {
    const { uuid, name, adminState, stoppedByJob, installState, diskTemplate, communication } =
      record;
    const { serialNo, createdAtMs, namedAfterJob, modifiedAtMs } = record;
    return {
      uuid,
      name,
      primaryNode: this.#one(record.primaryNode),
      osType: this.#one(record.osType),
      adminState,
      stoppedByJob,
      installState,
      tags: this.#one(record.tags),
      profiles: this.#one(record.profiles),
      bootEnv: record.bootEnv === null ? null : this.#one(record.bootEnv),
      beparams: this.#one(record.beparams),
      diskTemplate,
      diskBytes: localDiskBytes(record),
      communication,
      serialNo,
      createdAtMs,
      ...(namedAfterJob !== undefined && { namedAfterJob }),
      modifiedAtMs,
    };
  }

  /** Returns the first part that equals this one. */
  #one<T>(part: T): T {
    const key = JSON.stringify(part);
    const known = this.#parts.get(key);
    // Equal JSON means equal types.
    if (known !== undefined) return known as T;
    if (this.#parts.size >= MAX_SHARED) this.#parts.clear();
    this.#parts.set(key, part);
    return part;
  }
}
