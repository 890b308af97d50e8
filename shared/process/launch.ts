import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { systemCodeOf } from '../errors/app-error.ts';
import { SYSTEM_PATH } from './system-path.ts';

/** A running program with all its descendants. */
export interface LaunchedProgram {
  readonly child: ChildProcess;
  /** Rejects when the program could not be started. */
  readonly exit: Promise<readonly [number | null, NodeJS.Signals | null]>;
  /** Signals the program and its group, SIGKILL by default; harmless when none of them is left. */
  readonly kill: (signal?: 'SIGTERM' | 'SIGKILL') => void;
}

/** The whole environment, PATH by default; the folder, `/` by default. */
type Surroundings = Pick<SpawnOptions, 'cwd' | 'env' | 'stdio'>;

/** Starts a program. @throws the system's error on failure */
export type LaunchProgram = (
  command: string,
  args: readonly string[],
  options: Surroundings,
) => Promise<LaunchedProgram>;

/**
 * Starts a program in its own process group, which no key of a terminal signals.
 * @param outlives whether this process may end before the program
 */
export function launchProgram(
  [file = '', ...args]: readonly string[],
  {
    outlives = false,
    cwd = '/',
    env = { PATH: SYSTEM_PATH },
    stdio,
  }: Surroundings & { readonly outlives?: boolean },
): LaunchedProgram {
  const child = spawn(file, args, { cwd, env, stdio, detached: true });
  if (outlives) child.unref();
  // The event's arguments, as documented.
  const exit = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  // It is awaited later; until then a failure must not count as unhandled.
  exit.catch(() => undefined);
  return { child, exit, kill: (signal = 'SIGKILL') => signalGroup(child, signal) };
}

function signalGroup({ pid }: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    // The group has ended already.
    if (systemCodeOf(error) !== 'ESRCH') throw error;
  }
}
