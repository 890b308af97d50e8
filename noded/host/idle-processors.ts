import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';

/**
 * Processors of this host that have nothing to do right now, by the number of tasks that run or
 * could run (`proc_loadavg(5)`), this one left out. A moment's number: for what is faster with more
 * and works with less.
 */
export async function countIdleProcessors(): Promise<number> {
  return idleOf(await readFile('/proc/loadavg', 'utf8'), availableParallelism());
}

/** @param loadavg text of that file. Pure. */
export function idleOf(loadavg: string, processors: number): number {
  const runnable = Number(/ (\d+)\/\d+ /.exec(loadavg)?.[1]);
  return Number.isNaN(runnable) ? 0 : Math.max(0, processors - (runnable - 1));
}
