import { createReadStream } from 'node:fs';
import { open, rm, stat, type FileHandle, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pause } from '#shared/abort/until.ts';
import { MAX_INSTALL_LOG_BYTES, MAX_LOG_LINE_LENGTH } from '#shared/contract/install-event.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { plainText } from '#shared/text/plain-text.ts';

/**
 * Lines in memory for an error message. The log itself is bounded, because a hostile script may
 * print without end.
 */
const TAIL_LINES = 20;
const CONSOLE_LINES = 30;
const FOLLOW_INTERVAL_MS = 500;

/**
 * Log of one installation, readable by root only, with the last lines in memory for an error
 * message.
 */
export class InstallLog {
  readonly path: string;
  readonly #file: FileHandle;
  readonly #mask: (text: string) => string;
  readonly #tail: string[] = [];
  #writtenBytes = 0;
  #writing: Promise<unknown> = Promise.resolve();

  private constructor(path: string, file: FileHandle, mask: (text: string) => string) {
    this.path = path;
    this.#file = file;
    this.#mask = mask;
  }

  /** Truncates the file: an instance has the log of its last installation. */
  static async create(path: string, mask: (text: string) => string): Promise<InstallLog> {
    return new InstallLog(path, await open(path, 'w', 0o600), mask);
  }

  /** Masks secrets in other output as in the log. */
  mask(text: string): string {
    return this.#mask(text);
  }

  /** Appends output of a script. Only the node's own lines begin with `==` or `console:`. */
  appendOutput(line: string): void {
    this.append(/^\s*(==|console:)/.test(line) ? `| ${line}` : line);
  }

  append(line: string): void {
    // Masked before it is cut, so that no part of a secret remains at the cut.
    const text = toOneRecord(this.#mask(line)).slice(0, MAX_LOG_LINE_LENGTH);
    this.#tail.push(text);
    if (this.#tail.length > TAIL_LINES) this.#tail.shift();
    if (this.#writtenBytes > MAX_INSTALL_LOG_BYTES) return;
    const isLast = this.#writtenBytes + text.length > MAX_INSTALL_LOG_BYTES;
    const bytes = isLast ? '… the log is full: no further lines are recorded\n' : `${text}\n`;
    this.#writtenBytes += isLast ? MAX_INSTALL_LOG_BYTES : Buffer.byteLength(bytes);
    // A log that cannot be written (full disk) must not fail the installation.
    this.#writing = this.#writing.then(() => this.#file.write(bytes)).catch(() => undefined);
  }

  /** Appends the last lines of the guest's console, for a failure without another explanation. */
  keepConsole(consoleTail: string): void {
    for (const line of consoleTail.split('\n').slice(-CONSOLE_LINES))
      this.append(`console: ${line.trimEnd()}`);
  }

  tail(): readonly string[] {
    return [...this.#tail];
  }

  /** Resolves when all appended lines can be read. */
  async flush(): Promise<void> {
    await this.#writing;
  }

  async close(): Promise<void> {
    await this.#writing;
    await this.#file.close();
  }
}

/** Indents further lines, so that none looks like another record, and removes terminal escapes. */
function toOneRecord(text: string): string {
  return plainText(text).replaceAll('\n', '\n  ');
}

export function installLogPath(logDir: string, uuid: string): string {
  return join(logDir, `install-${uuid}.log`);
}

/** Output of the last export or rename script. */
export function scriptLogPath(logDir: string, uuid: string): string {
  return join(logDir, `script-${uuid}.log`);
}

export async function removeLogs(logDir: string, uuid: string): Promise<void> {
  await rm(installLogPath(logDir, uuid), { force: true });
  await rm(scriptLogPath(logDir, uuid), { force: true });
}

/**
 * Yields the log's bytes, none if the file is missing. Follows the file while `isOngoing` returns
 * true.
 */
export async function* readInstallLog(
  path: string,
  isOngoing: () => boolean | Promise<boolean>,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  let offset = 0;
  for (;;) {
    const goesOn = await isOngoing();
    const size = await sizeOf(path);
    if (size < offset) offset = 0;
    if (size > offset) {
      for await (const chunk of createReadStream(path, { start: offset, end: size - 1 })) {
        yield chunk as Buffer; // no encoding is set
      }
      offset = size;
    }
    if (!goesOn || signal.aborted) return;
    await pause(FOLLOW_INTERVAL_MS, signal);
  }
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return 0;
    throw error;
  }
}

const LOG = /^(?:install|script)-([0-9a-f-]{36})\.log$/;

/**
 * Removes logs of installations and scripts of instances that moved to another node, which writes
 * its own. Audit logs stay. Logs without a record stay, because it may come back.
 */
export async function sweepLogs(
  logDir: string,
  {
    index,
    owns,
  }: {
    readonly index: {
      list(): Promise<readonly { readonly uuid: string; readonly primaryNode: string }[]>;
    };
    readonly owns: (node: string) => boolean;
  },
): Promise<void> {
  const logged = new Set((await readdir(logDir)).flatMap((name) => LOG.exec(name)?.[1] ?? []));
  if (logged.size === 0) return;
  for (const { uuid, primaryNode } of await index.list())
    if (logged.has(uuid) && !owns(primaryNode)) await removeLogs(logDir, uuid);
}
