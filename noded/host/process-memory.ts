import { readFileSync } from 'node:fs';

/** Memory that a process has taken, in MiB; 0 when it is gone. */
export function residentMiB(pid: number): number {
  try {
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return Number(kib ?? 0) / 1024;
  } catch {
    // It ended: it holds nothing any more.
    return 0;
  }
}
