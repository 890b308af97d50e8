import { closeSync, constants, openSync, readdirSync, readlinkSync } from 'node:fs';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { createMemoryFile } from '#shared/sys/files.ts';
import { KIB, MIB } from '#shared/units/bytes.ts';
import { bound, readTail } from './bounded-log.ts';

const NAME = 'gnt-console';

export interface ConsoleLogLimits {
  /** The log of one machine has so many: no more than a few times what is ever read of it. */
  readonly maxBytes: number;
  /** The logs of all machines have so many together. */
  readonly maxBytesOfAll: number;
}

const LIMITS: ConsoleLogLimits = { maxBytes: 256 * KIB, maxBytesOfAll: 64 * MIB };

/** What the machines of this node say on their consoles; all of them share what it may take. */
export class ConsoleLogs {
  readonly #limits: ConsoleLogLimits;
  readonly #open = new Set<ConsoleLog>();

  constructor(limits: ConsoleLogLimits = LIMITS) {
    this.#limits = limits;
  }

  create(): ConsoleLog {
    return this.#keep(createMemoryFile(NAME));
  }

  /** The one of a QEMU that another process started; undefined when it cannot be found. */
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
 * What a guest said on its console, in memory: guests print passwords. It is an anonymous file that
 * QEMU appends to, and goes with its last descriptor.
 */
export class ConsoleLog {
  readonly #fd: number;
  readonly #all: { readonly share: () => number; readonly closed: () => void };
  #isOpen = true;

  constructor(fd: number, all: { readonly share: () => number; readonly closed: () => void }) {
    this.#fd = fd;
    this.#all = all;
  }

  /** @returns a descriptor that appends, to be inherited and then closed */
  openForAppending(): number {
    return openSync(`/proc/self/fd/${this.#fd}`, constants.O_WRONLY | constants.O_APPEND);
  }

  /** @returns the last `maxBytes` of the log */
  readTail(maxBytes: number): string {
    return this.#isOpen ? readTail(this.#fd, maxBytes) : '';
  }

  /** Empties it when it has grown beyond its share; QEMU appends, so it goes on at the start. */
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
