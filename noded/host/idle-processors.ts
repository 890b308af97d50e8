import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

const LOOKS = 20;
const BETWEEN_LOOKS_MS = 10;

/**
 * Counts idle processors of this host from the number of runnable tasks (`proc_loadavg(5)`),
 * without this one. For work that is optional with fewer processors. Some task nearly always runs
 * for a millisecond, so the best of 20 samples counts. A busy host has no idle processor in any
 * sample.
 * @param wanted sufficient number; reached by the first sample, the call takes no time
 */
export async function findIdleProcessors(wanted: number): Promise<number> {
  let most = 0;
  for (let look = 0; look < LOOKS && most < wanted; look += 1) {
    if (look > 0) await sleep(BETWEEN_LOOKS_MS);
    // Synchronous: a thread of the pool that reads it would count as runnable.
    most = Math.max(most, idleOf(readFileSync('/proc/loadavg', 'utf8'), availableParallelism()));
  }
  return most;
}

/** @param loadavg text of /proc/loadavg */
export function idleOf(loadavg: string, processors: number): number {
  const runnable = Number(/ (\d+)\/\d+ /.exec(loadavg)?.[1]);
  return Number.isNaN(runnable) ? 0 : Math.max(0, processors - (runnable - 1));
}
