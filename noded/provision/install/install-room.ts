import { every } from '#shared/clock/every.ts';
import { abortable } from '#shared/abort/abortable.ts';
import type { JobContext } from '../../jobs/job-handler.ts';

/** Memory of the QEMU process besides the guest's: translated code, disk buffers. */
const OVERHEAD_MIB = 192;
/** Interval in milliseconds for checking the free memory while an installation waits. */
const POLL_MS = 2000;

export interface InstallRoomOptions {
  /** Limit of concurrent installations. */
  readonly maxInstalls: number;
  /** Memory that installations leave free. */
  readonly reserveMiB: number;
  /** Memory that is available without swapping. */
  readonly availableMiB: () => number;
  /** Memory that the instance's QEMU process already uses; 0 before it runs. */
  readonly takenMiB: (uuid: string) => number;
}

export interface InstallDemand {
  readonly uuid: string;
  /** Memory of the QEMU process for the installation. */
  readonly memoryMiB: number;
}

interface Waiter {
  readonly jobId: number;
  readonly demand: InstallDemand;
  readonly report: JobContext['report'];
  readonly grant: () => void;
  told: string;
}

interface Obstacle {
  readonly reason: string;
  readonly jobs: readonly number[];
}

/**
 * Limits concurrent installations to the room of the node. Others wait in the order of their
 * arrival.
 *
 * INVARIANTS: a job with room never waits for a lock, so locks and room cannot deadlock; without
 * running installations the first waiter is always admitted, even with too little memory.
 */
export class InstallRoom {
  readonly #options: InstallRoomOptions;
  readonly #holders = new Map<number, InstallDemand>();
  readonly #waiters: Waiter[] = [];
  #timer: Disposable | undefined;

  constructor(options: InstallRoomOptions) {
    this.#options = options;
  }

  /**
   * Waits for room. Disposing of the result frees the room.
   * @throws the signal's reason when it is aborted while waiting
   */
  async enter(
    demand: InstallDemand,
    { jobId, signal, report }: Pick<JobContext, 'jobId' | 'signal' | 'report'>,
  ): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#waiters.length === 0 && this.#obstacleOf(demand) === undefined) {
      this.#holders.set(jobId, demand);
    } else {
      await this.#wait({ jobId, demand, report }, signal);
    }
    return {
      [Symbol.dispose]: () => {
        if (this.#holders.delete(jobId)) this.reconsider();
      },
    };
  }

  /**
   * Admits the waiting installations that fit now. Also called every POLL_MS while installations
   * wait.
   */
  reconsider(): void {
    for (;;) {
      const [first] = this.#waiters;
      if (first === undefined) break;
      const obstacle = this.#obstacleOf(first.demand);
      if (obstacle !== undefined) {
        tell(first, obstacle);
        break;
      }
      this.#waiters.shift();
      this.#holders.set(first.jobId, first.demand);
      first.grant();
    }
    this.#watch();
  }

  async #wait(asked: Pick<Waiter, 'jobId' | 'demand' | 'report'>, signal: AbortSignal) {
    await abortable<void>(signal, (resolve) => {
      const grant = (): void => {
        asked.report.waits(null, []);
        resolve();
      };
      const waiter: Waiter = { ...asked, told: '', grant };
      this.#waiters.push(waiter);
      if (this.#waiters.length > 1) tell(waiter, this.#turnOf(this.#waiters.length - 1));
      this.reconsider();
      return () => {
        const at = this.#waiters.indexOf(waiter);
        if (at < 0) return;
        this.#waiters.splice(at, 1);
        const behind = this.#waiters[at];
        if (behind !== undefined && at > 0) tell(behind, this.#turnOf(at));
        this.reconsider();
      };
    });
  }

  #turnOf(at: number): Obstacle {
    const before = this.#waiters[at - 1];
    return {
      reason: 'its turn: an earlier installation waits for capacity of the node',
      jobs: before === undefined ? [] : [before.jobId],
    };
  }

  #obstacleOf(demand: InstallDemand): Obstacle | undefined {
    if (this.#holders.size === 0) return undefined;
    const { maxInstalls, reserveMiB, availableMiB, takenMiB } = this.#options;
    const jobs = [...this.#holders.keys()];
    if (this.#holders.size >= maxInstalls) {
      return {
        reason: `capacity of the node: gnt-noded --max-installs allows ${maxInstalls} at a time`,
        jobs,
      };
    }
    // Running installations will still take this much memory.
    const promisedMiB = [...this.#holders.values()].reduce(
      (sum, held) => sum + Math.max(0, needOf(held) - takenMiB(held.uuid)),
      0,
    );
    const freeMiB = availableMiB() - promisedMiB - reserveMiB;
    const neededMiB = needOf(demand);
    if (freeMiB >= neededMiB) return undefined;
    return {
      reason: `memory of the node: the installation needs ${neededMiB} MiB beside the running ones, and gnt-noded --install-reserve-mib keeps ${reserveMiB} MiB free`,
      jobs,
    };
  }

  #watch(): void {
    if (this.#waiters.length === 0) {
      this.#timer?.[Symbol.dispose]();
      this.#timer = undefined;
      return;
    }
    this.#timer ??= every(POLL_MS, () => this.reconsider());
  }
}

function needOf({ memoryMiB }: InstallDemand): number {
  return memoryMiB + OVERHEAD_MIB;
}

/** Reports a change of the reason once, because every report stores the job's record. */
function tell(waiter: Waiter, { reason, jobs }: Obstacle): void {
  const text = `${reason} ${jobs.join(' ')}`;
  if (text === waiter.told) return;
  waiter.told = text;
  waiter.report.waits(reason, jobs);
}
