import { readFileSync } from 'node:fs';
import { until } from '#shared/abort/until.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { readProcFile } from './process-facts.ts';

/** Identifies a process beyond its end: pids are reused, starts are unique within one boot. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks after boot, as in /proc/<pid>/stat. */
  readonly startTicks: string;
}

/** Parses a line of /proc/<pid>/stat (proc(5)). Returns undefined for another text or a zombie. */
export function parseProcessStat(line: string): ProcessIdentity | undefined {
  // The name is in parentheses and may contain any character.
  const pid = /^(\d+) \(/.exec(line)?.[1];
  const fields = line
    .slice(line.lastIndexOf(')') + 1)
    .trim()
    .split(' ');
  const [state, startTicks] = [fields[0], fields[19]];
  if (pid === undefined || startTicks === undefined || !/^\d+$/.test(startTicks)) return undefined;
  if (state === 'Z' || state === 'X') return undefined;
  return { pid: Number(pid), startTicks };
}

/** Returns undefined for a missing process or a zombie. */
export function readProcessIdentity(pid: number): ProcessIdentity | undefined {
  return parseProcessStat(readProcFile(pid, 'stat') ?? '');
}

/** Returns the present parent of a running process. */
export function readParentIdentity(pid: number): ProcessIdentity | undefined {
  const line = readProcFile(pid, 'stat') ?? '';
  // State and parent follow the name.
  const parent = /^ \w (\d+) /.exec(line.slice(line.lastIndexOf(')') + 1))?.[1];
  return parent === undefined ? undefined : readProcessIdentity(Number(parent));
}

export function isAlive(identity: ProcessIdentity): boolean {
  return readProcessIdentity(identity.pid)?.startTicks === identity.startTicks;
}

/** Sends a signal unless the process has ended. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): void {
  if (!isAlive(identity)) return;
  try {
    process.kill(identity.pid, signal);
  } catch (error) {
    if (systemCodeOf(error) !== 'ESRCH') throw error;
  }
}

/** There is no event for the end of a process that is no child. */
const END_POLL_MS = 20;

/**
 * Ends a process by SIGTERM, then SIGKILL.
 * @param limits `askMs`: wait after SIGTERM, 0 to skip it; `killMs`: wait after SIGKILL
 * @returns whether it has ended
 */
export async function endProcess(
  identity: ProcessIdentity,
  { askMs, killMs }: { readonly askMs: number; readonly killMs: number },
): Promise<boolean> {
  const end = async (signal: NodeJS.Signals, limitMs: number): Promise<void> => {
    signalProcess(identity, signal);
    await until(() => !isAlive(identity), { everyMs: END_POLL_MS, limitMs });
  };
  if (askMs > 0) await end('SIGTERM', askMs);
  await end('SIGKILL', killMs);
  return !isAlive(identity);
}

export function readBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}
