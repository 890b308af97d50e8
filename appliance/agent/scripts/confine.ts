import { type GroupOptions, type ProgramEnd, runInGroup } from '#shared/process/run-in-group.ts';
import { PERL, planConfineCommand } from '../process/held-namespace.ts';
import type { StageReporter } from '../report/stage.ts';
import type { Limits } from './limits.ts';

/** Time for reading left-over output; a program's processes have all ended with it. */
const DRAIN_MS = 500;

export interface Confinement {
  /** The process that holds their mount namespace; null for a copy of the agent's own namespace. */
  readonly holderPid: number | null;
  /** Null without limits, as in tests. */
  readonly limits: Limits | null;
}

export const NO_WORLD: Confinement = { holderPid: null, limits: null };

/**
 * A root directory in that mount namespace, and its mount points for devices, processes and sysfs.
 */
export interface ProgramRoot {
  readonly path: string;
  readonly dev?: string;
  readonly proc?: string;
  readonly sys?: string;
}

/**
 * Runs a program as root in its own namespaces and within limits, without capabilities and system
 * calls that reach the kernel, the agent's memory or the agent's mounts. All its processes have
 * ended when this returns.
 * @param streams in place of no input and the log, and whether the log is full
 */
export async function runConfined(
  { holderPid, limits }: Confinement,
  root: ProgramRoot,
  program: readonly string[],
  environment: Readonly<Record<string, string>>,
  log: StageReporter['log'],
  { stdin, stdout, isFull }: Pick<GroupOptions, 'stdin' | 'stdout' | 'isFull'> = {},
): Promise<ProgramEnd> {
  const { path, dev = '', proc = '', sys = '' } = root;
  const args = planConfineCommand(
    'run',
    ...[String(holderPid ?? 0), limits?.group ?? '', path, dev, proc, sys],
    ...program,
  );
  const run = (): Promise<ProgramEnd> =>
    runInGroup({
      command: PERL,
      args,
      environment,
      stdin,
      stdout,
      drainMs: DRAIN_MS,
      onLine: log,
      isFull,
    });
  return await (limits ? limits.watch(run) : run());
}
