import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

const LOOKS = 20;
const BETWEEN_LOOKS_MS = 10;

/**
 * Counts processors of this host that have nothing to do right now, by the number of tasks that run
 * or could run (`proc_loadavg(5)`), this one left out. It is for what is faster with more and works
 * with less. Each look is a moment's: some task of the host's own nearly always runs for a
 * millisecond, so the best of a fifth of a second counts, and a busy host has none in all of it.
 * @param wanted how many are enough; with these at the first look it takes no time
 */
export async function findIdleProcessors(wanted: number): Promise<number> {
  let most = 0;
  for (let look = 0; look < LOOKS && most < wanted; look += 1) {
    if (look > 0) await sleep(BETWEEN_LOOKS_MS);
    // This thread reads it itself: another one that read for it would count as one that runs.
    most = Math.max(most, idleOf(readFileSync('/proc/loadavg', 'utf8'), availableParallelism()));
  }
  return most;
}

/** @param loadavg text of that file. Pure. */
export function idleOf(loadavg: string, processors: number): number {
  const runnable = Number(/ (\d+)\/\d+ /.exec(loadavg)?.[1]);
  return Number.isNaN(runnable) ? 0 : Math.max(0, processors - (runnable - 1));
}
