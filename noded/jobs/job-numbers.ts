import type { Store } from '#shared/store/store.ts';

export const COUNTERS = 'counters';
/** The counter that the jobs of all nodes have their numbers from. */
export const JOB_NUMBERS = 'job-id';

export interface Counter {
  readonly last: number;
  /** What it was read as, for a commit that nobody comes before. */
  readonly expected: number | 'absent';
}

export async function readCounter(store: Pick<Store, 'get'>, id: string): Promise<Counter> {
  const stored = await store.get(COUNTERS, id);
  const last = typeof stored?.value === 'number' ? stored.value : 0;
  return { last, expected: stored?.revision ?? 'absent' };
}
