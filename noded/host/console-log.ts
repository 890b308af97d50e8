import { closeSync, constants, openSync, readdirSync, readlinkSync } from 'node:fs';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { createMemoryFile } from '#shared/sys/libc.ts';
import { bound, readTail } from './bounded-log.ts';

const NAME = 'gnt-console';

/**
 * What a guest said on its console, in memory: guests print passwords. It is an anonymous file that
 * QEMU appends to, and goes with its last descriptor.
 */
export class ConsoleLog {
  readonly #fd: number;
  #isOpen = true;

  private constructor(fd: number) {
    this.#fd = fd;
  }

  static create(): ConsoleLog {
    return new ConsoleLog(createMemoryFile(NAME));
  }

  /** The one of a QEMU that another process started; undefined when it cannot be found. */
  static ofProcess(pid: number): ConsoleLog | undefined {
    const directory = `/proc/${pid}/fd`;
    try {
      for (const name of readdirSync(directory)) {
        if (!readlinkSync(`${directory}/${name}`).startsWith(`/memfd:${NAME}`)) continue;
        return new ConsoleLog(openSync(`${directory}/${name}`, constants.O_RDWR));
      }
    } catch (error) {
      const code = systemCodeOf(error);
      if (code !== 'ENOENT' && code !== 'ESRCH') throw error;
    }
    return undefined;
  }

  /** @returns a descriptor that appends, to be inherited and then closed */
  openForAppending(): number {
    return openSync(`/proc/self/fd/${this.#fd}`, constants.O_WRONLY | constants.O_APPEND);
  }

  /** @returns the last `maxBytes` of the log */
  readTail(maxBytes: number): string {
    return this.#isOpen ? readTail(this.#fd, maxBytes) : '';
  }

  /** Empties it when it has grown larger; QEMU appends, so it goes on at the start. */
  bound(maxBytes: number): void {
    if (this.#isOpen) bound(this.#fd, maxBytes);
  }

  close(): void {
    if (this.#isOpen) closeSync(this.#fd);
    this.#isOpen = false;
  }
}
