import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { basename } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { MAX_LOG_LINE_LENGTH } from '#shared/contract/install-event.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';

export interface HostScriptOptions {
  /** Absolute path of the script. */
  readonly path: string;
  readonly args?: readonly string[];
  /** The whole environment, OSP_* included; nothing is inherited. */
  readonly environment: Readonly<Record<string, string>>;
  /** Directories before Ganeti's PATH, for `gnt-channel`. */
  readonly extraPath?: readonly string[];
  /** Working directory; Ganeti runs scripts in the definition's. */
  readonly cwd: string;
  readonly onLine: (stream: 'stdout' | 'stderr', line: string) => void;
  /** Kills the script and all of its process group. */
  readonly signal: AbortSignal;
  /** For import: the dump. */
  readonly stdin?: Readable;
  /** For export: takes stdout's bytes instead of `onLine`. */
  readonly stdout?: Writable;
}

/** Lines of the output that an error carries. */
const TAIL_LINES = 10;
/** A daemon that the script started may hold its output: what is not read this long after the exit is given up. */
const DRAIN_MS = 5000;

/**
 * Runs a trusted OS script on the host, in a process group of its own.
 * @throws AppError SCRIPT_FAILED with the status and the last lines, or the signal's reason
 */
export async function runHostScript(options: HostScriptOptions): Promise<void> {
  options.signal.throwIfAborted();
  const child = start(options);
  const onAbort = (): void => killGroup(child);
  options.signal.addEventListener('abort', onAbort);
  const tail: string[] = [];
  try {
    const flows = pumpStreams(child, options, tail);
    const [status, signalName] = await waitForExit(child, options.path);
    // What the script left in the background would keep its output open for ever, and must not outlive the job.
    killGroup(child);
    const drained = setTimeout(() => child.stdio.forEach((stream) => stream?.destroy()), DRAIN_MS);
    const results = await Promise.allSettled(flows);
    clearTimeout(drained);
    options.signal.throwIfAborted();
    if (status !== 0) throw scriptFailed(options.path, status, signalName, tail);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  } finally {
    options.signal.removeEventListener('abort', onAbort);
  }
}

function start(options: HostScriptOptions): ChildProcess {
  const { environment } = options;
  const path = [...(options.extraPath ?? []), environment['PATH'] ?? ''].join(':');
  return spawn(options.path, options.args ?? [], {
    cwd: options.cwd,
    env: { ...environment, PATH: path },
    detached: true,
    stdio: [options.stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'],
  });
}

function pumpStreams(
  child: ChildProcess,
  options: HostScriptOptions,
  tail: string[],
): Promise<void>[] {
  const emit = (stream: 'stdout' | 'stderr') => (line: string) => {
    tail.push(line);
    if (tail.length > TAIL_LINES) tail.shift();
    options.onLine(stream, line);
  };
  const flows: Promise<void>[] = [];
  if (child.stderr) flows.push(readLines(child.stderr, emit('stderr')));
  if (child.stdout) {
    flows.push(
      options.stdout
        ? pipeline(child.stdout, options.stdout)
        : readLines(child.stdout, emit('stdout')),
    );
  }
  if (child.stdin && options.stdin) flows.push(feed(options.stdin, child.stdin));
  // They are awaited after the exit; until then a failure must not count as unhandled.
  for (const flow of flows) flow.catch(() => undefined);
  return flows;
}

/** Calls back with each line, cut at MAX_LOG_LINE_LENGTH: what is beyond is never kept. */
async function readLines(stream: Readable, onLine: (line: string) => void): Promise<void> {
  try {
    await splitLines(stream, onLine);
  } catch (error) {
    // Given up after DRAIN_MS.
    if (systemCodeOf(error) !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
}

async function splitLines(stream: Readable, onLine: (line: string) => void): Promise<void> {
  stream.setEncoding('utf8');
  let rest = '';
  // setEncoding makes the chunks strings.
  for await (const chunk of stream as AsyncIterable<string>) {
    const lines = chunk.split('\n');
    const last = lines.pop() ?? '';
    for (const line of lines) {
      onLine((rest + line.slice(0, MAX_LOG_LINE_LENGTH)).slice(0, MAX_LOG_LINE_LENGTH));
      rest = '';
    }
    rest = (rest + last.slice(0, MAX_LOG_LINE_LENGTH)).slice(0, MAX_LOG_LINE_LENGTH);
  }
  if (rest !== '') onLine(rest);
}

/** A script need not read its input to the end. */
async function feed(source: Readable, target: Writable): Promise<void> {
  try {
    await pipeline(source, target);
  } catch (error) {
    if (systemCodeOf(error) !== 'EPIPE') throw error;
  }
}

async function waitForExit(
  child: ChildProcess,
  path: string,
): Promise<[number | null, NodeJS.Signals | null]> {
  try {
    // The event's arguments, as documented.
    return (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  } catch (error) {
    throw new AppError('SCRIPT_FAILED', `${path} cannot be run: ${messageOf(error)}`, {
      details: { script: path },
      cause: error,
      hint: 'check its first line (#!) and its mode',
    });
  }
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch (error) {
    if (systemCodeOf(error) !== 'ESRCH') throw error;
  }
}

function scriptFailed(
  path: string,
  status: number | null,
  signalName: NodeJS.Signals | null,
  tail: readonly string[],
): AppError {
  const how = signalName ? `was killed by ${signalName}` : `exited with status ${status ?? '?'}`;
  return new AppError('SCRIPT_FAILED', `OS ${basename(path)} script ${how}`, {
    details: { script: path, status, signal: signalName, logTail: [...tail] },
    hint: 'its output is in the install log',
  });
}
