import { spawn } from 'node:child_process';
import { createLineSplitter } from '../report/line-splitter.ts';
import type { StageReporter } from '../stages/stage.ts';

/** Lines of output that a failure's message repeats. */
const LAST_LINES = 5;
/** A daemon that a program left behind may keep its output open. */
const DRAIN_TIMEOUT_MS = 500;

export interface ProgramEnd {
  readonly isSuccess: boolean;
  /** `exited with status 1`, `was killed by SIGKILL` */
  readonly how: string;
  readonly lastLines: readonly string[];
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
): Promise<ProgramEnd> {
  const lastLines: string[] = [];
  const child = spawn(command, args, {
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const splitters = (['stdout', 'stderr'] as const).map((stream) => {
    const splitter = createLineSplitter((line) => {
      lastLines.push(line);
      if (lastLines.length > LAST_LINES) lastLines.shift();
      log(line, stream);
    });
    child[stream].setEncoding('utf8').on('data', (text: string) => splitter.push(text));
    return splitter;
  });
  const { status, signal } = await ended(child);
  for (const splitter of splitters) splitter.end();
  return {
    isSuccess: status === 0,
    how: signal === null ? `exited with status ${status}` : `was killed by ${signal}`,
    lastLines,
  };
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
