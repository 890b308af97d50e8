import { readFileSync, readdirSync, statSync } from 'node:fs';
import { systemCodeOf } from '#shared/errors/app-error.ts';

/** The process ended before or during the read. */
const GONE = ['ENOENT', 'ESRCH'];

/** Returns the text of /proc/<pid>/<name>; undefined when the process has ended. */
export function readProcFile(pid: number, name: string): string | undefined {
  return unless(GONE, () => readFileSync(`/proc/${pid}/${name}`, 'utf8'));
}

/** Returns the real user id; undefined when the process has ended. */
export function userOf(pid: number): number | undefined {
  const uid = /^Uid:\s+(\d+)/m.exec(readProcFile(pid, 'status') ?? '')?.[1];
  return uid === undefined ? undefined : Number(uid);
}

/** Returns resident memory in MiB; 0 when the process has ended. */
export function residentMiB(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readProcFile(pid, 'status') ?? '')?.[1];
  return Number(kib ?? 0) / 1024;
}

export function isInNetworkNamespace(pid: number, path: string): boolean {
  // EACCES: root may not look at it, so root did not start it.
  const theirs = unless([...GONE, 'EACCES'], () => statSync(`/proc/${pid}/ns/net`));
  const wanted = unless(GONE, () => statSync(path));
  return theirs !== undefined && theirs.ino === wanted?.ino && theirs.dev === wanted.dev;
}

export interface OpenFile {
  readonly dev: bigint;
  readonly ino: bigint;
}

/**
 * Lists other processes with the file open, as `4711 (qemu-system-x86)`. Looks at all processes.
 */
export function listHolders({ dev, ino }: OpenFile): readonly string[] {
  const holders: string[] = [];
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    if (Number(pid) === process.pid) continue;
    const fds = unless([...GONE, 'EACCES'], () => readdirSync(`/proc/${pid}/fd`)) ?? [];
    const hasIt = fds.some((fd) => {
      const found = unless([...GONE, 'EACCES'], () =>
        statSync(`/proc/${pid}/fd/${fd}`, { bigint: true }),
      );
      return found?.dev === dev && found.ino === ino;
    });
    if (hasIt) holders.push(`${pid} (${readProcFile(Number(pid), 'comm')?.trim() ?? '?'})`);
  }
  return holders;
}

function unless<T>(codes: readonly string[], read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (codes.includes(systemCodeOf(error) ?? '')) return undefined;
    throw error;
  }
}
