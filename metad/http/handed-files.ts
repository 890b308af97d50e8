import { randomUUID } from 'node:crypto';
import { closeSync, rmSync } from 'node:fs';
import { bindWithMode } from '#shared/socket/listen-unix.ts';
import { receiveDescriptor } from '#shared/sys/descriptors.ts';
import { openUnixDatagrams } from '#shared/sys/unix-sockets.ts';

const SOCKET_MODE = 0o600;
/** Length of a name, and one byte to detect a longer one. */
const MAX_NAME_BYTES = 64;

/** Delay until a file is received that was sent while its guest disconnected. */
const LATE_MS = 1000;

/** A file requested from the node daemon. The requester disposes of it after the answer. */
export interface ExpectedFile extends Disposable {
  /** The node daemon sends the file under this name. */
  readonly name: string;
  /**
   * Returns the descriptor, after the node daemon has said that it sent the file; null when it did
   * not arrive. The caller closes it.
   */
  take(): number | null;
}

/**
 * Receives open files from the node daemon on a socket beside the control socket. The socket is
 * read when an answer announces a file. Files that were not requested are closed.
 */
export class HandedFiles implements Disposable {
  readonly #socketPath: string;
  /** Descriptors of requested files by name; null until received. */
  readonly #expected = new Map<string, number | null>();
  #socket: number | undefined;
  #lateLook: NodeJS.Timeout | undefined;

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

  /** An unread descriptor keeps its file open, and the disk space in use. */
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

/** Replaces the socket of an earlier process. The control socket excludes a second one. */
function listen(path: string): number {
  rmSync(path, { force: true });
  return bindWithMode(SOCKET_MODE, () => openUnixDatagrams(path));
}
