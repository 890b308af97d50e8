import { spawn } from 'node:child_process';
import { AppError } from '#shared/errors/app-error.ts';
import { createLineSplitter } from '../report/line-splitter.ts';
import type { StageReporter } from '../stages/stage.ts';

/** Lines of output that the failure's message repeats. */
const LAST_LINES = 5;
/** A daemon that a script left behind may keep its output open. */
const DRAIN_TIMEOUT_MS = 500;

export interface ScriptOptions {
  /** Root directory of the script's world. */
  readonly rootPath: string;
  /** Within that root: the OS definition, which is also the working directory. */
  readonly directory: string;
  /** Relative to `directory`. */
  readonly path: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly reporter: StageReporter;
}

/**
 * Runs an OS script as root with exactly the given environment, and ends everything of its process group with it.
 * @throws AppError SCRIPT_FAILED with its status and its last lines
 */
export async function runScript(options: ScriptOptions): Promise<void> {
  const lastLines: string[] = [];
  const child = spawn(
    '/usr/sbin/chroot',
    [options.rootPath, '/usr/bin/env', '-C', options.directory, `./${options.path}`],
    { env: options.environment, stdio: ['ignore', 'pipe', 'pipe'], detached: true },
  );
  const splitters = (['stdout', 'stderr'] as const).map((stream) => {
    const splitter = createLineSplitter((line) => {
      lastLines.push(line);
      if (lastLines.length > LAST_LINES) lastLines.shift();
      options.reporter.log(line, stream);
    });
    child[stream].setEncoding('utf8').on('data', (text: string) => splitter.push(text));
    return splitter;
  });
  const { status, signal } = await ended(child);
  for (const splitter of splitters) splitter.end();
  if (status === 0) return;
  const how = signal === null ? `exited with status ${status}` : `was killed by ${signal}`;
  throw new AppError(
    'SCRIPT_FAILED',
    [`OS script ${options.path} ${how}`, ...lastLines].join('\n'),
    {
      hint: 'read its whole output: gnt-instance log NAME',
    },
  );
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
