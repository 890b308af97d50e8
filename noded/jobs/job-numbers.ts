import type { Store } from '#shared/store/store.ts';

export const COUNTERS = 'counters';
/** Counter of the job numbers of all nodes. */
export const JOB_NUMBERS = 'job-id';

export interface Counter {
  readonly last: number;
  /** Revision for a commit that fails after a concurrent write. */
  readonly expected: number | 'absent';
}

export async function readCounter(store: Pick<Store, 'get'>, id: string): Promise<Counter> {
  const stored = await store.get(COUNTERS, id);
  const last = typeof stored?.value === 'number' ? stored.value : 0;
  return { last, expected: stored?.revision ?? 'absent' };
}
