import { readFileSync, statSync } from 'node:fs';
import { systemCodeOf } from '#shared/errors/app-error.ts';

/** Identifies a process for as long as the machine runs: pids come again, start times do not. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot. */
  readonly startTime: string;
}

/** Undefined when there is no such process, or only its zombie. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const text = readProcFile(pid, 'stat');
  // proc(5): the name in parentheses may hold anything, the fields after the last one are plain.
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, startTime] = [fields?.[0], fields?.[19]];
  if (state === undefined || startTime === undefined || 'ZX'.includes(state)) return undefined;
  return { pid, startTime };
}

export function isAlive(identity: ProcessIdentity): boolean {
  return identifyProcess(identity.pid)?.startTime === identity.startTime;
}

export function isInNetworkNamespace(pid: number, path: string): boolean {
  try {
    const [theirs, wanted] = [statSync(`/proc/${pid}/ns/net`), statSync(path)];
    return theirs.ino === wanted.ino && theirs.dev === wanted.dev;
  } catch (error) {
    // One that root may not look at is nobody's whom root started.
    if (isGone(error) || systemCodeOf(error) === 'EACCES') return false;
    throw error;
  }
}

/** Real user id, or undefined when the process is gone. */
export function userOf(pid: number): number | undefined {
  const uid = /^Uid:\s+(\d+)/m.exec(readProcFile(pid, 'status') ?? '')?.[1];
  return uid === undefined ? undefined : Number(uid);
}

function readProcFile(pid: number, name: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

function isGone(error: unknown): boolean {
  return ['ENOENT', 'ESRCH'].includes(systemCodeOf(error) ?? '');
}
