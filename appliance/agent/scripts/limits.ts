import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { every } from '#shared/clock/every.ts';
import { runCommand } from '../process/command.ts';
import type { ProgramEnd } from '#shared/process/run-in-group.ts';
import { MIB } from '#shared/units/bytes.ts';

/**
 * Processes and threads at a time. An installer has some tens. Each takes kernel memory, so that
 * more would hardly fit.
 */
const MAX_PROCESSES = 512;
/** The agent's share of the memory that is free when the first script runs. */
const AGENT_RESERVE_BYTES = 64 * MIB;
const MIN_MEMORY_BYTES = 64 * MIB;
/** Longest life of a fork bomb. */
const WATCH_INTERVAL_MS = 500;

/**
 * Limits all programs together in a control group, which the kernel kills as a whole when it
 * exceeds its memory.
 */
export class Limits {
  readonly group: string;
  readonly #limited: string;
  readonly #memoryBytes: number;

  private constructor(limited: string, memoryBytes: number) {
    this.group = join(limited, 'run');
    this.#limited = limited;
    this.#memoryBytes = memoryBytes;
  }

  /**
   * Mounts the control groups in the agent's namespace only, and sets the limits. The agent's
   * memory is never swapped: a script could read the key from a swap device of its own.
   */
  static async create(mountPoint: string): Promise<Limits> {
    mkdirSync(mountPoint, { recursive: true });
    await runCommand('mount', ['-t', 'cgroup2', 'cgroup2', mountPoint]);
    const set = (path: string, value: string): void => writeFileSync(join(mountPoint, path), value);
    set('cgroup.subtree_control', '+memory +pids');
    // Programs are one level below their limits, so that the visible root of their control groups
    // is their own.
    for (const name of ['agent', 'programs', 'programs/run']) mkdirSync(join(mountPoint, name));
    set('agent/cgroup.procs', String(process.pid));
    set('agent/memory.swap.max', '0');
    const memoryBytes = Math.max(MIN_MEMORY_BYTES, availableBytes() - AGENT_RESERVE_BYTES);
    set('programs/memory.max', String(memoryBytes));
    set('programs/memory.swap.max', '0');
    set('programs/memory.oom.group', '1');
    set('programs/pids.max', String(MAX_PROCESSES));
    return new Limits(join(mountPoint, 'programs'), memoryBytes);
  }

  /**
   * Runs a program that joins the group. Kills the group at too many processes, and reports the
   * exceeded limit.
   */
  async watch(run: () => Promise<ProgramEnd>): Promise<ProgramEnd> {
    const before = this.#count();
    using timers = new DisposableStack();
    const killBombs = (): void => {
      if (this.#count().forks > before.forks)
        writeFileSync(join(this.#limited, 'cgroup.kill'), '1');
    };
    timers.use(every(WATCH_INTERVAL_MS, killBombs));
    const end = await run();
    const after = this.#count();
    const reason =
      after.kills > before.kills
        ? `exceeded the memory limit of ${Math.floor(this.#memoryBytes / MIB)} MiB`
        : after.forks > before.forks
          ? `exceeded the limit of ${MAX_PROCESSES} processes`
          : null;
    return reason === null ? end : { ...end, isSuccess: false, how: `was killed: it ${reason}` };
  }

  #count(): { kills: number; forks: number } {
    return {
      kills: readCounter(join(this.#limited, 'memory.events'), 'oom_kill'),
      forks: readCounter(join(this.#limited, 'pids.events'), 'max'),
    };
  }
}

function readCounter(path: string, name: string): number {
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(readFileSync(path, 'utf8'))?.[1] ?? 0);
}

function availableBytes(): number {
  const kib = /^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1];
  return Number(kib ?? 0) * 1024;
}
