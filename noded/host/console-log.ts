import { closeSync, constants, openSync, readdirSync, readlinkSync } from 'node:fs';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { createMemoryFile } from '#shared/sys/files.ts';
import { KIB, MIB } from '#shared/units/bytes.ts';
import { bound, readTail } from './bounded-log.ts';

const NAME = 'gnt-console';

export interface ConsoleLogLimits {
  /** Limit of one log: a few times the size that is ever read. */
  readonly maxBytes: number;
  /** Limit of all logs together. */
  readonly maxBytesOfAll: number;
}

const LIMITS: ConsoleLogLimits = { maxBytes: 256 * KIB, maxBytesOfAll: 64 * MIB };

/** Keeps the console output of guests in memory, within one limit for the node. */
export class ConsoleLogs {
  readonly #limits: ConsoleLogLimits;
  readonly #open = new Set<ConsoleLog>();

  constructor(limits: ConsoleLogLimits = LIMITS) {
    this.#limits = limits;
  }

  create(): ConsoleLog {
    return this.#keep(createMemoryFile(NAME));
  }

  /** Returns the log of a QEMU process that another daemon started, or undefined. */
  ofProcess(pid: number): ConsoleLog | undefined {
    const fd = findLog(pid);
    return fd === undefined ? undefined : this.#keep(fd);
  }

  #keep(fd: number): ConsoleLog {
    const log = new ConsoleLog(fd, {
      share: () =>
        Math.min(this.#limits.maxBytes, Math.floor(this.#limits.maxBytesOfAll / this.#open.size)),
      closed: () => this.#open.delete(log),
    });
    this.#open.add(log);
    return log;
  }
}

function findLog(pid: number): number | undefined {
  const directory = `/proc/${pid}/fd`;
  try {
    for (const name of readdirSync(directory)) {
      if (readlinkSync(`${directory}/${name}`).startsWith(`/memfd:${NAME}`))
        return openSync(`${directory}/${name}`, constants.O_RDWR);
    }
  } catch (error) {
    const code = systemCodeOf(error);
    if (code !== 'ENOENT' && code !== 'ESRCH') throw error;
  }
  return undefined;
}

/**
 * Keeps a guest's console output in memory, because guests print passwords. It is an anonymous file
 * that QEMU appends to, and ends with its last descriptor.
 */
export class ConsoleLog {
  readonly #fd: number;
  readonly #all: { readonly share: () => number; readonly closed: () => void };
  #isOpen = true;

  constructor(fd: number, all: { readonly share: () => number; readonly closed: () => void }) {
    this.#fd = fd;
    this.#all = all;
  }

  /** Opens the log for QEMU to inherit. The caller closes it. */
  openForAppending(): number {
    return openSync(`/proc/self/fd/${this.#fd}`, constants.O_WRONLY | constants.O_APPEND);
  }

  readTail(maxBytes: number): string {
    return this.#isOpen ? readTail(this.#fd, maxBytes) : '';
  }

  /** Truncates a log larger than its share. QEMU appends, so it continues at the start. */
  bound(): void {
    if (this.#isOpen) bound(this.#fd, this.#all.share());
  }

  close(): void {
    if (!this.#isOpen) return;
    closeSync(this.#fd);
    this.#isOpen = false;
    this.#all.closed();
  }
}
