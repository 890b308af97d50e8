import { abortable } from '#shared/abort/abortable.ts';
import type { JobContext } from '../../jobs/job-handler.ts';

/** QEMU's own memory beside the guest's: translated code, disk buffers. */
const OVERHEAD_MIB = 192;
/**
 * How often memory that others gave back is looked for while an installation waits, in
 * milliseconds.
 */
const POLL_MS = 2000;

export interface InstallRoomOptions {
  /** How many installations may run at the same time. */
  readonly maxInstalls: number;
  /** Memory of the node that no installation may take. */
  readonly reserveMiB: number;
  /** Memory that processes can get now, without swapping. */
  readonly availableMiB: () => number;
  /** What the machine of an instance has taken of its memory already; 0 before it runs. */
  readonly takenMiB: (uuid: string) => number;
}

export interface InstallDemand {
  /** Instance whose machine installs. */
  readonly uuid: string;
  /** How much memory that machine takes. */
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
 * Lets as many installations run as the node has room for; the others wait in the order in which
 * they came.
 */
export interface InstallRoom {
  /**
   * Disposing of the answer gives the room back.
   * @throws the signal's reason when it is aborted while waiting
   */
  enter(
    demand: InstallDemand,
    context: Pick<JobContext, 'jobId' | 'signal' | 'report'>,
  ): Promise<Disposable>;
  /** Lets in whoever fits now. Also called from time to time while somebody waits. */
  reconsider(): void;
}

export function createInstallRoom(options: InstallRoomOptions): InstallRoom {
  return new WaitingRoom(options);
}

/**
 * INVARIANTS: who has room never waits for a lock, so locks and room cannot block each other; with
 * no installation running the first waiter always gets in, however little memory there is.
 */
class WaitingRoom implements InstallRoom {
  readonly #options: InstallRoomOptions;
  readonly #holders = new Map<number, InstallDemand>();
  readonly #waiters: Waiter[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(options: InstallRoomOptions) {
    this.#options = options;
  }

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
    // What is promised to installations that run, and not taken by them yet.
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
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    this.#timer ??= setInterval(() => this.reconsider(), POLL_MS).unref();
  }
}

function needOf({ memoryMiB }: InstallDemand): number {
  return memoryMiB + OVERHEAD_MIB;
}

/** Each change is told once: a job's record is stored every time. */
function tell(waiter: Waiter, { reason, jobs }: Obstacle): void {
  const text = `${reason} ${jobs.join(' ')}`;
  if (text === waiter.told) return;
  waiter.told = text;
  waiter.report.waits(reason, jobs);
}
