import { randomUUID } from 'node:crypto';
import { closeSync, rmSync } from 'node:fs';
import { bindWithMode } from '#shared/socket/listen-unix.ts';
import { receiveDescriptor } from '#shared/sys/descriptors.ts';
import { openUnixDatagrams } from '#shared/sys/unix-sockets.ts';

/** rw------- */
const SOCKET_MODE = 0o600;
/** A name, and what shows that one is too long. */
const MAX_NAME_BYTES = 64;

/** How long until a file is looked for that was on its way while its guest went away. */
const LATE_MS = 1000;

/** A file that the node daemon was asked for. Who asked disposes of it when it is answered. */
export interface ExpectedFile extends Disposable {
  /** What the node daemon sends it by. */
  readonly name: string;
  /**
   * Its descriptor, once the node daemon says that it has sent it, which the caller closes; null
   * when it has not come.
   */
  take(): number | null;
}

/**
 * Open files that the node daemon hands over, for this process to read: on a socket beside the
 * control socket, which is looked at when an answer says that there is something. What nobody waits
 * for is closed.
 */
class HandedFiles implements Disposable {
  readonly #socketPath: string;
  /** Descriptors of files that were asked for, by name; null: it has not come. */
  readonly #expected = new Map<string, number | null>();
  #socket: number | undefined;
  #lateLook: NodeJS.Timeout | undefined;

  /** @param socketPath is made with the first file that is asked for */
  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  expect(): ExpectedFile {
    this.#socket ??= listen(this.#socketPath);
    const name = randomUUID();
    this.#expected.set(name, null);
    const take = (): number | null => {
      this.#receive();
      const fd = this.#expected.get(name) ?? null;
      this.#expected.delete(name);
      return fd;
    };
    return {
      name,
      take,
      [Symbol.dispose]: () => {
        const fd = take();
        if (fd !== null) closeSync(fd);
        this.#lookLater();
      },
    };
  }

  /** Until somebody looks, a file that is on its way is open, and its disk space is not free. */
  #lookLater(): void {
    if (this.#lateLook) this.#lateLook.refresh();
    else this.#lateLook = setTimeout(() => this.#receive(), LATE_MS).unref();
  }

  #receive(): void {
    if (this.#socket === undefined) return;
    for (;;) {
      const message = receiveDescriptor(this.#socket, MAX_NAME_BYTES);
      if (message === null) return;
      const { text, fd } = message;
      if (fd === null) continue;
      if (this.#expected.get(text) === null) this.#expected.set(text, fd);
      else closeSync(fd);
    }
  }

  [Symbol.dispose](): void {
    if (this.#socket === undefined) return;
    clearTimeout(this.#lateLook);
    this.#receive();
    for (const fd of this.#expected.values()) if (fd !== null) closeSync(fd);
    this.#expected.clear();
    closeSync(this.#socket);
    rmSync(this.#socketPath, { force: true });
    this.#socket = undefined;
  }
}

export type { HandedFiles };

export function createHandedFiles(socketPath: string): HandedFiles {
  return new HandedFiles(socketPath);
}

/** One that is left there is of a process before this one: whoever answers next to it is alone. */
function listen(path: string): number {
  rmSync(path, { force: true });
  return bindWithMode(SOCKET_MODE, () => openUnixDatagrams(path));
}
