import { type GroupOptions, type ProgramEnd, runInGroup } from '#shared/process/run-in-group.ts';
import { PERL, planConfineCommand } from '../process/held-namespace.ts';
import type { StageReporter } from '../report/stage.ts';
import type { Limits } from './limits.ts';

/** All of a program's processes are gone when it has ended: this is for what is still in a pipe. */
const DRAIN_MS = 500;

/** What surrounds the programs of scripts and hooks. */
export interface Confinement {
  /**
   * The process that holds their mount namespace; null for the agent's own, of which each gets a
   * copy.
   */
  readonly holderPid: number | null;
  /** Null where nothing is limited, as in tests. */
  readonly limits: Limits | null;
}

export const NO_WORLD: Confinement = { holderPid: null, limits: null };

/**
 * A root directory, as that mount namespace has it, and where it is to have devices, processes and
 * the kernel's objects.
 */
export interface ProgramRoot {
  readonly path: string;
  readonly dev?: string;
  readonly proc?: string;
  readonly sys?: string;
}

/**
 * Runs a program as root, but in namespaces of its own, without the capabilities and system calls
 * by which root reaches the kernel, the agent's memory or the agent's mounts, and within limits.
 * Whatever it started has ended when this returns.
 * @param streams in place of nothing and the log, and whether that is full
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
      ...{ command: PERL, args, environment, stdin, stdout, drainMs: DRAIN_MS },
      ...{ onLine: log, isFull },
    });
  return await (limits ? limits.watch(run) : run());
}
