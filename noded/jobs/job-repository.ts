import { jobRecord, type JobRecord } from '#shared/contract/job.ts';
import { listRecords, parseRecord, type RecordProblems } from '#shared/store/readable-records.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store } from '#shared/store/store.ts';

const COLLECTION = 'jobs';
const COUNTERS = 'counters';
const COUNTER = 'job-id';
/** Ended jobs that are kept. */
const MAX_KEPT_JOBS = 5000;

export interface JobRepository {
  nextId(): Promise<number>;
  save(job: JobRecord): Promise<void>;
  load(id: number): Promise<JobRecord | undefined>;
  /** Oldest first. */
  list(): Promise<readonly JobRecord[]>;
}

export function createJobRepository(store: Store, problems: RecordProblems): JobRepository {
  // Saves of one job follow each other, so that an older state never overwrites a newer one.
  let lastSave: Promise<unknown> = Promise.resolve();
  return {
    nextId: async () => {
      for (;;) {
        const counter = await store.get(COUNTERS, COUNTER);
        const next = typeof counter?.value === 'number' ? counter.value + 1 : 1;
        try {
          await store.commit([
            {
              collection: COUNTERS,
              id: COUNTER,
              expected: counter?.revision ?? 'absent',
              value: next,
            },
          ]);
          if (next > MAX_KEPT_JOBS) await forget(store, next - MAX_KEPT_JOBS);
          return next;
        } catch (error) {
          if (!(error instanceof StoreConflict)) throw error;
        }
      }
    },
    save: async (job) => {
      const save = lastSave.then(() =>
        store.commit([{ collection: COLLECTION, id: keyOf(job.id), expected: 'any', value: job }]),
      );
      lastSave = save.catch(() => undefined);
      await save;
    },
    load: async (id) => {
      const stored = await store.get(COLLECTION, keyOf(id));
      return stored && parseRecord(jobRecord, COLLECTION, stored);
    },
    list: () => listRecords(store, COLLECTION, jobRecord, problems),
  };
}

/** Ordered by id as text. */
function keyOf(id: number): string {
  return String(id).padStart(10, '0');
}

async function forget(store: Store, id: number): Promise<void> {
  await store.commit([
    { collection: COLLECTION, id: keyOf(id), expected: 'any', value: undefined },
  ]);
}
