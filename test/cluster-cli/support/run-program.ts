import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';

const top = join(import.meta.dirname, '../../..');
/** Starting a program under load takes seconds. No test waits longer on purpose. */
const LIMIT_MS = 60_000;

export interface ProgramOptions {
  readonly root: string;
  readonly input?: string | Buffer;
  /** Keeps stdin open without a byte. */
  readonly holdInput?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  /** Runs in a terminal of this many columns. stdout and stderr are then one text. */
  readonly columns?: number;
  readonly onStart?: (child: ChildProcess) => void;
  readonly onOutput?: (text: string, child: ChildProcess) => void;
}

export interface ProgramEnd {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program of this package by its launcher until it ends. */
export async function runProgram(
  program: string,
  args: readonly string[],
  options: ProgramOptions,
): Promise<ProgramEnd> {
  const launcher = join(top, 'node_modules/.bin', program);
  const [command, commandArgs] =
    options.columns === undefined
      ? [launcher, args]
      : ['script', ['-qefc', inTerminal(options.columns, [launcher, ...args]), '/dev/null']];
  const child = spawn(command, [...commandArgs], {
    env: {
      PATH: process.env['PATH'],
      HOME: '/nonexistent',
      LANG: 'C.UTF-8',
      TERM: 'xterm',
      GNT_ROOT: options.root,
      ...options.env,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => {
    out.push(chunk);
    options.onOutput?.(Buffer.concat(out).toString('utf8'), child);
  });
  child.stderr.on('data', (chunk: Buffer) => {
    err.push(chunk);
    options.onOutput?.(Buffer.concat(err).toString('utf8'), child);
  });
  // A program that ends without reading its stdin closes it.
  child.stdin.on('error', () => undefined);
  options.onStart?.(child);
  if (!options.holdInput) child.stdin.end(options.input ?? '');
  const status = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  clearTimeout(timer);
  return {
    status,
    stdout: Buffer.concat(out).toString('utf8'),
    stderr: Buffer.concat(err).toString('utf8'),
  };
}

function inTerminal(columns: number, words: readonly string[]): string {
  const quoted = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  return `stty cols ${columns} rows 24; exec ${quoted}`;
}
