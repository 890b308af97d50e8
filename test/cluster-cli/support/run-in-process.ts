import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { type Host, runProgram as runCommand } from '../../../cluster-cli/main-commands.ts';
import type { ProgramEnd } from './run-program.ts';

export interface InProcessOptions {
  readonly root: string;
  readonly input?: string | Buffer;
  readonly env?: Readonly<Record<string, string>>;
  /** Receives all output so far, and a function that acts as SIGINT does. */
  readonly onOutput?: (text: string, interrupt: () => void) => void;
  /** Receives a function that acts as SIGINT does. */
  readonly onStart?: (interrupt: () => void) => void;
}

/**
 * Runs a command in the process of the test, without a terminal. Working directory, `HOME` and the
 * environment of child processes are those of the test; `run-program.ts` runs a launcher.
 */
export async function runInProcess(
  program: string,
  args: readonly string[],
  { root, input = '', env = {}, onOutput, onStart }: InProcessOptions,
): Promise<ProgramEnd> {
  const stdinFd = openWith(input);
  const interrupts: (() => void)[] = [];
  const interrupt = (): void => interrupts.forEach((listener) => listener());
  onStart?.(interrupt);
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  const collect = (chunks: Buffer[]): Writable =>
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        chunks.push(chunk);
        onOutput?.(Buffer.concat(chunks).toString(), interrupt);
        done();
      },
    });
  try {
    const status = await new Promise<number>((resolve, reject) => {
      const host = {
        argv: [process.execPath, program, ...args],
        env: { LANG: 'C.UTF-8', TERM: 'xterm', GNT_ROOT: root, ...env },
        execPath: process.execPath,
        execArgv: [],
        stdin: Readable.from(input === '' ? [] : [Buffer.from(input)]),
        stdinFd,
        stdout: collect(out),
        stderr: collect(err),
        title: '',
        on: (signal: string, listener: () => void) =>
          void (signal === 'SIGINT' && interrupts.push(listener)),
        exit: resolve,
      };
      runCommand(host as unknown as Host).catch(reject);
    });
    return { status, stdout: String(Buffer.concat(out)), stderr: String(Buffer.concat(err)) };
  } finally {
    closeSync(stdinFd);
  }
}

/** Opens an unlinked file with this content. */
function openWith(content: string | Buffer): number {
  if (content === '') return openSync('/dev/null', 'r');
  const folder = mkdtempSync(join(tmpdir(), 'gnt-stdin-'));
  try {
    writeFileSync(join(folder, 'stdin'), content);
    return openSync(join(folder, 'stdin'), 'r');
  } finally {
    rmSync(folder, { recursive: true });
  }
}
