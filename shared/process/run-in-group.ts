import type { ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { StringDecoder } from 'node:string_decoder';
import { AppError, systemCodeOf } from '../errors/app-error.ts';
import { cleanLine, LineSplitter } from '../text/lines.ts';
import { launchProgram, type LaunchProgram } from './launch.ts';

export interface GroupOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment: nothing is inherited. */
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
  /**
   * Gets each line of the output. Lines are complete up to MAX_LINE_LENGTH, so that a mask sees
   * them before a log cuts them.
   */
  readonly onLine: (line: string, stream: 'stdout' | 'stderr') => void;
  /**
   * Whether `onLine` ignores further lines. Later output is read and dropped, except its last
   * lines: splitting gigabytes into lines takes longer than printing them.
   */
  readonly isFull?: (() => boolean) | undefined;
  /** Input of the program; nothing by default. */
  readonly stdin?: Readable | undefined;
  /** Receives the bytes of the standard output, in place of `onLine`. */
  readonly stdout?: Writable | undefined;
  /** Kills the program and its group. */
  readonly signal?: AbortSignal | undefined;
  /** Delay between SIGTERM and SIGKILL; no SIGTERM by default. */
  readonly graceMs?: number | undefined;
  /** Longest wait for the rest of the log after the end. */
  readonly drainMs: number;
  /** Starts the program; by default in its own process group. */
  readonly launch?: LaunchProgram | undefined;
}

export interface ProgramEnd {
  readonly isSuccess: boolean;
  /** The exit status of a program that was not killed. */
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  /** `exited with status 1`, `was killed by SIGKILL` */
  readonly how: string;
  readonly lastLines: readonly string[];
}

/** Characters of a line; longer ones are cut. */
const MAX_LINE_LENGTH = 65_536;
/** Lines of the output that a failure repeats. */
const LAST_LINES = 10;
/** Time for the rest of a pipe to a slow disk, of which no byte may be lost. */
const STDOUT_DRAIN_MS = 30_000;

/**
 * Runs a program in its own process group, passes on its output, and kills the rest of the group
 * after its end.
 * @throws the system's error on a failed start, the error of a broken stream, or the signal's
 * reason
 */
export async function runInGroup(options: GroupOptions): Promise<ProgramEnd> {
  options.signal?.throwIfAborted();
  const lastLines: string[] = [];
  const { command, args, launch = launchInGroup } = options;
  const program = await launch(command, args, {
    cwd: options.cwd,
    env: options.environment,
    stdio: [options.stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  const { child } = program;
  let late: NodeJS.Timeout | undefined;
  const abort = (): void => {
    if (options.graceMs === undefined) return program.kill();
    program.kill('SIGTERM');
    late = setTimeout(() => program.kill(), options.graceMs);
  };
  options.signal?.addEventListener('abort', abort);
  if (options.signal?.aborted) abort();
  try {
    const flows = connectStreams(child, options, (line, stream) => {
      lastLines.push(line);
      if (lastLines.length > LAST_LINES) lastLines.shift();
      if (options.isFull?.() !== true) options.onLine(line, stream);
    });
    const [status, signal] = await program.exit;
    options.signal?.removeEventListener('abort', abort);
    // A background process of the program would keep its output open, and must not outlive it.
    program.kill();
    await drain(child, flows, options);
    const how = signal ? `was killed by ${signal}` : `exited with status ${status}`;
    return { isSuccess: status === 0, status, signal, how, lastLines };
  } finally {
    options.signal?.removeEventListener('abort', abort);
    clearTimeout(late);
  }
}

const launchInGroup: LaunchProgram = (command, args, options) =>
  Promise.resolve(launchProgram([command, ...args], options));

function connectStreams(
  { stdin, stdout, stderr }: ChildProcess,
  options: GroupOptions,
  onLine: GroupOptions['onLine'],
): readonly Promise<void>[] {
  const flows: Promise<void>[] = [];
  const { isFull = () => false } = options;
  if (stderr) flows.push(readLog(stderr, (line) => onLine(line, 'stderr'), isFull));
  if (stdout && options.stdout) flows.push(pipeline(stdout, options.stdout));
  else if (stdout) flows.push(readLog(stdout, (line) => onLine(line, 'stdout'), isFull));
  if (stdin && options.stdin) flows.push(feed(options.stdin, stdin));
  // They are awaited after the exit; until then a failure must not count as unhandled.
  for (const flow of flows) flow.catch(() => undefined);
  return flows;
}

/** Limits the wait: a daemon that left the group may keep every stream open. */
async function drain(
  child: ChildProcess,
  flows: readonly Promise<void>[],
  { stdout, signal, drainMs }: GroupOptions,
): Promise<void> {
  // The program has ended and reads nothing more.
  child.stdin?.destroy();
  const stdoutMs = stdout === undefined || signal?.aborted ? drainMs : STDOUT_DRAIN_MS;
  const timers = [
    setTimeout(() => child.stderr?.destroy(), drainMs),
    setTimeout(() => child.stdout?.destroy(stdout && heldOpen()), stdoutMs),
  ];
  const abort = (): void => void child.stdout?.destroy();
  signal?.addEventListener('abort', abort);
  const ends = await Promise.allSettled(flows);
  signal?.removeEventListener('abort', abort);
  for (const timer of timers) clearTimeout(timer);
  signal?.throwIfAborted();
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}

async function readLog(
  stream: Readable,
  onLine: (line: string) => void,
  isFull: () => boolean,
): Promise<void> {
  const splitter = new LineSplitter({ maxLength: MAX_LINE_LENGTH, longer: 'cut' });
  let decoder = new StringDecoder('utf8');
  try {
    // Without an encoding the chunks are bytes.
    for await (const bytes of stream as AsyncIterable<Buffer>) {
      const start = isFull() ? startOfLastLines(bytes) : 0;
      if (start > 0) {
        // Drop the unfinished line, and the rest of a character.
        splitter.end();
        decoder = new StringDecoder('utf8');
      }
      for (const line of splitter.push(decoder.write(bytes.subarray(start))))
        onLine(cleanLine(line));
    }
  } catch (error) {
    // The stream was closed after the time limit of `drain`.
    if (systemCodeOf(error) !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
  splitter.push(decoder.end());
  const rest = splitter.end();
  if (rest !== '') onLine(cleanLine(rest));
}

/** @returns the offset of the last lines; 0 for fewer lines */
function startOfLastLines(bytes: Buffer): number {
  let end = bytes.length;
  for (let lines = 0; lines <= LAST_LINES; lines += 1) {
    if (end <= 0) return 0;
    end = bytes.lastIndexOf('\n', end - 1);
  }
  return end + 1;
}

/** Pipes the input, which a program need not read to its end. */
async function feed(source: Readable, target: Writable): Promise<void> {
  try {
    await pipeline(source, target);
  } catch (error) {
    // The program closed its input or ended, or a write was cancelled because it had ended.
    const unread = ['EPIPE', 'ECONNRESET', 'ECANCELED', 'ERR_STREAM_PREMATURE_CLOSE'];
    if (!unread.includes(systemCodeOf(error) ?? '')) throw error;
  }
}

function heldOpen(): AppError {
  return new AppError(
    'SCRIPT_FAILED',
    'a program that the script left running holds its output open',
  );
}
