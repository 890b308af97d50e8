import { type GroupOptions, type ProgramEnd, runInGroup } from '#shared/process/run-in-group.ts';
import type { StageReporter } from '../report/stage.ts';

/** A daemon that a program left behind may keep its output open. */
const DRAIN_MS = 500;

/**
 * Runs a program with exactly this environment, hands on what it prints line by line, and ends everything of its process group
 * with it.
 * @param streams in place of nothing and the log
 */
export function runLogged(
  command: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  log: StageReporter['log'],
  { stdin, stdout }: Pick<GroupOptions, 'stdin' | 'stdout'> = {},
): Promise<ProgramEnd> {
  return runInGroup({ command, args, environment, onLine: log, stdin, stdout, drainMs: DRAIN_MS });
}
