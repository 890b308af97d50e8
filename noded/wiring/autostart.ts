import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import PQueue from 'p-queue';
import type { Clock } from '#shared/clock/clock.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { writeDurably } from '#shared/files/durable.ts';
import type { Logger } from '#shared/log/log.ts';
import type { MachineExit } from '../vmm/machine.ts';
import { awaitedSecrets, isWantedUp, planStarts } from '../instances/machines/plan-starts.ts';
import type { JobService } from '../jobs/job-service.ts';
import type { IndexedInstance } from '../records/instance-index.ts';
import { readIndexed, type IndexedRecords } from '../records/read-indexed.ts';

/** As in Ganeti's watcher: the same number of tries, counted over the same time. */
const MAX_TRIES = 5;
const RESTARTS_WITHIN_MS = 8 * 3600 * 1000;
/** Between two tries, and before the restart of a crashed instance. */
const PAUSE_MS = 10_000;

export interface AutostartDependencies extends IndexedRecords {
  /** Returns whether a node name in a record means this node. */
  readonly owns: (node: string) => boolean;
  readonly isRunning: (uuid: string) => boolean;
  /** Returns whether this node is marked offline: its jobs are refused while it is. */
  readonly isOffline: () => Promise<boolean>;
  readonly jobs: Pick<JobService, 'submit' | 'watch'>;
  /** Holds the id of the boot in which instances were last started. */
  readonly bootFile: string;
  readonly bootId: string;
  readonly maxStarts: number;
  readonly logger: Logger;
  readonly clock: Clock;
  /** For tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/** Starts instances that should run and do not, each in a job of its own. */
export interface Autostart extends AsyncDisposable {
  /** Resolves when all initial starts, retries included, have ended. */
  readonly settled: Promise<void>;
  /** Must be called at each end of a QEMU process in a normal run. */
  machineEnded(uuid: string, exit: Pick<MachineExit, 'reason'>): void;
}

export function startAutostart(dependencies: AutostartDependencies): Autostart {
  const starter = new Starter(dependencies);
  return {
    settled: starter.startAll(),
    machineEnded: (uuid, { reason }) => {
      // A shutdown from inside or outside is intended.
      if (reason !== 'guest-shutdown' && reason !== 'host-request') starter.restart(uuid);
    },
    [Symbol.asyncDispose]: () => starter.stop(),
  };
}

/**
 * INVARIANTS: the file names this boot only after each start was tried once; an instance has one
 * start at a time.
 */
class Starter {
  readonly #dependencies: AutostartDependencies;
  readonly #end = new AbortController();
  readonly #tasks = new Set<Promise<unknown>>();
  readonly #busy = new Set<string>();
  /** Monotonic times, by instance. */
  readonly #restartedAtMs = new Map<string, readonly number[]>();

  constructor(dependencies: AutostartDependencies) {
    this.#dependencies = dependencies;
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await Promise.all(this.#tasks);
  }

  startAll(): Promise<void> {
    return this.#run(() => this.#startAll());
  }

  restart(uuid: string): void {
    void this.#run(() => this.#restart(uuid));
  }

  /** Runs a task that `stop` aborts and whose failure is logged. */
  #run(task: () => Promise<void>): Promise<void> {
    const running = task().catch((error: unknown) => {
      if (!this.#end.signal.aborted)
        this.#dependencies.logger.error('autostart.failed', { err: error });
    });
    this.#tasks.add(running);
    return running.finally(() => this.#tasks.delete(running));
  }

  async #startAll(): Promise<void> {
    const { bootFile, bootId, maxStarts, logger } = this.#dependencies;
    const former = await readBoot(bootFile);
    const isNewBoot = former !== bootId;
    // Without a file the boot is unknown: an upgrade must not start instances as if the host had
    // booted.
    const reason = isNewBoot && former !== undefined ? 'boot' : 'ended';
    await this.#untilOnline();
    const groups = planStarts(await this.#listDown(), reason);
    if (groups.length > 0) logger.info('autostart.begins', { reason, count: groups.flat().length });
    const retries: Promise<void>[] = [];
    for (const group of groups) {
      const queue = new PQueue({ concurrency: maxStarts });
      await queue.addAll(
        group.map((instance) => async () => {
          if (await this.#tryStart(instance.uuid))
            await this.#sleep(instance.autostart.delayS * 1000);
          else retries.push(this.#retry(instance.uuid));
        }),
      );
    }
    if (isNewBoot && !this.#end.signal.aborted)
      await writeDurably(bootFile, `${bootId}\n`, { mode: 0o600 });
    await Promise.all(retries);
  }

  /**
   * Waits until the node is no longer marked offline. Refused jobs must not count as tries: guests
   * of a returned host wait for its operator.
   */
  async #untilOnline(): Promise<void> {
    const { isOffline, logger } = this.#dependencies;
    // The store may be unavailable. The next job or list reports that.
    for (let waits = 0; await isOffline().catch(() => false); waits += 1) {
      if (waits === 0) logger.warn('autostart.waits-for-mark');
      await this.#sleep(PAUSE_MS);
    }
  }

  async #listDown(): Promise<readonly InstanceRecord[]> {
    const { owns, isRunning, logger } = this.#dependencies;
    const isMeant = (instance: Omit<IndexedInstance, 'diskBytes'>): boolean =>
      owns(instance.primaryNode) && isWantedUp(instance) && !isRunning(instance.uuid);
    for (;;) {
      try {
        const slices = await Array.fromAsync(readIndexed(this.#dependencies, isMeant));
        return slices.flat().filter(isMeant);
      } catch (error) {
        logger.warn('autostart.waits-for-store', { err: error });
        await this.#sleep(PAUSE_MS);
      }
    }
  }

  async #retry(uuid: string): Promise<void> {
    for (let tries = 1; tries < MAX_TRIES; tries += 1) {
      await this.#sleep(PAUSE_MS * tries);
      if (await this.#tryStart(uuid)) return;
    }
    this.#dependencies.logger.error('autostart.given-up', { uuid, tries: MAX_TRIES });
  }

  async #restart(uuid: string): Promise<void> {
    const { instances, clock, logger } = this.#dependencies;
    const instance = await instances.findByUuid(uuid);
    const restarts = instance?.autostart.restarts ?? 0;
    if (restarts === 0) return;
    const now = clock.monotonicMs();
    const former = this.#restartedAtMs.get(uuid) ?? [];
    const recent = former.filter((atMs) => atMs > now - RESTARTS_WITHIN_MS);
    if (recent.length >= restarts) {
      logger.error('autostart.given-up', { instance: instance?.name, restarts });
      return;
    }
    this.#restartedAtMs.set(uuid, [...recent, now]);
    await this.#sleep(PAUSE_MS);
    if (!(await this.#tryStart(uuid))) await this.#retry(uuid);
  }

  /** @returns false if a later try may succeed */
  async #tryStart(uuid: string): Promise<boolean> {
    const { instances, isRunning, logger } = this.#dependencies;
    await this.#untilOnline();
    if (this.#busy.has(uuid)) return true;
    this.#busy.add(uuid);
    try {
      // Read it again: it may have been stopped, started or removed.
      const instance = await instances.findByUuid(uuid);
      if (instance === undefined || !isWantedUp(instance) || isRunning(uuid)) return true;
      const secrets = awaitedSecrets(instance);
      if (secrets.length > 0) {
        logger.warn('autostart.waits-for-secrets', { instance: instance.name, secrets });
        return true;
      }
      const { id, status, error } = await this.#runJob(instance.name);
      if (status === 'success') return true;
      logger.warn('autostart.not-started', { instance: instance.name, job: id, code: error?.code });
      return status === 'canceled';
    } catch (error) {
      this.#end.signal.throwIfAborted();
      logger.warn('autostart.not-started', { uuid, err: error });
      return false;
    } finally {
      this.#busy.delete(uuid);
    }
  }

  async #runJob(name: string): Promise<JobRecord> {
    const { jobs } = this.#dependencies;
    const id = await jobs.submit({ opcode: 'INSTANCE_STARTUP', name, osParametersSecret: {} });
    for await (const event of jobs.watch(id, this.#end.signal))
      if (event.type === 'end') return event.job;
    this.#end.signal.throwIfAborted();
    throw new Error(`job ${id} ended without a result`);
  }

  async #sleep(ms: number): Promise<void> {
    const { sleep = (pause, signal) => wait(pause, undefined, { signal, ref: false }) } =
      this.#dependencies;
    if (ms > 0) await sleep(ms, this.#end.signal);
  }
}

async function readBoot(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
