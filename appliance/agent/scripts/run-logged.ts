import { spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { createLineSplitter } from '../report/line-splitter.ts';
import type { StageReporter } from '../report/stage.ts';

/** Lines of output that a failure's message repeats. */
const LAST_LINES = 5;
/** A daemon that a program left behind may keep its output open. */
const DRAIN_TIMEOUT_MS = 500;
/** Of a dump every byte counts: the rest of a pipe, on a slow disk. */
const DUMP_DRAIN_TIMEOUT_MS = 30_000;

export interface ProgramEnd {
  readonly isSuccess: boolean;
  /** `exited with status 1`, `was killed by SIGKILL` */
  readonly how: string;
  readonly lastLines: readonly string[];
}

/** In place of nothing and the log. */
export interface ProgramStreams {
  readonly stdin?: Readable;
  readonly stdout?: Writable;
}

/**
 * Runs a program with exactly this environment, hands on what it prints line by line, and ends everything of its process group
 * with it.
 */
export async function runLogged(
  command: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  log: StageReporter['log'],
  { stdin, stdout }: ProgramStreams = {},
): Promise<ProgramEnd> {
  const lastLines: string[] = [];
  const child = spawn(command, args, {
    env: environment,
    stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    detached: true,
  });
  const splitters = (['stdout', 'stderr'] as const)
    .filter((stream) => stream === 'stderr' || stdout === undefined)
    .map((stream) => {
      const splitter = createLineSplitter((line) => {
        lastLines.push(line);
        if (lastLines.length > LAST_LINES) lastLines.shift();
        log(line, stream);
      });
      child[stream]?.setEncoding('utf8').on('data', (text: string) => splitter.push(text));
      return splitter;
    });
  const fed = stdin && child.stdin ? feed(stdin, child.stdin) : undefined;
  // When the one that takes it gives up, the program is told by its next write.
  const taken = stdout && child.stdout && pipeline(child.stdout, stdout, { end: false });
  for (const flow of [fed, taken]) flow?.catch(() => undefined);
  const { status, signal } = await ended(child);
  for (const splitter of splitters) splitter.end();
  // It has read what it wanted; what it left behind may hold either end open.
  stdin?.destroy();
  const drained = setTimeout(() => child.stdout?.destroy(heldOpen()), DUMP_DRAIN_TIMEOUT_MS);
  try {
    await taken;
  } finally {
    clearTimeout(drained);
  }
  await fed;
  return {
    isSuccess: status === 0,
    how: signal === null ? `exited with status ${status}` : `was killed by ${signal}`,
    lastLines,
  };
}

function heldOpen(): AppError {
  return new AppError('SCRIPT_FAILED', 'a program that it left running holds its output open');
}

/** A program need not read its input to the end. */
async function feed(source: Readable, target: Writable): Promise<void> {
  try {
    await pipeline(source, target);
  } catch (error) {
    const code = systemCodeOf(error);
    if (code !== 'EPIPE' && code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
}

async function ended(
  child: ReturnType<typeof spawn>,
): Promise<{ status: number | null; signal: NodeJS.Signals | null }> {
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const result = await new Promise<{ status: number | null; signal: NodeJS.Signals | null }>(
    (resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (status, signal) => resolve({ status, signal }));
    },
  );
  killGroup(child.pid);
  const timer = new Promise<void>((resolve) => setTimeout(resolve, DRAIN_TIMEOUT_MS).unref());
  await Promise.race([closed, timer]);
  return result;
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // ESRCH: nothing of the group is left, which is what we want.
  }
}
