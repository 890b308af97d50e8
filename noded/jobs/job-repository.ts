import { jobRecord, type JobRecord } from '#shared/contract/job.ts';
import { listRecords, parseRecord, type RecordProblems } from '#shared/store/readable-records.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store, Write } from '#shared/store/store.ts';

const COLLECTION = 'jobs';
const COUNTERS = 'counters';
const COUNTER = 'job-id';
/**
 * The last jobs of each submitter, by their numbers modulo how many are kept: a new one takes the
 * place of the oldest of the same.
 */
const RINGS = 'job-rings';
/** How many of root's ended jobs are kept. */
const MAX_KEPT_JOBS = 5000;
/** Of each user of the remote API, so that nobody pushes out what others did. */
const MAX_KEPT_JOBS_OF_USER = 1000;

export interface JobRepository {
  /** @param submitter in whose history the job is going to be; undefined for root */
  nextId(submitter?: string): Promise<number>;
  save(job: JobRecord): Promise<void>;
  load(id: number): Promise<JobRecord | undefined>;
  /** All jobs, the oldest first. */
  list(): Promise<readonly JobRecord[]>;
}

export function createJobRepository(store: Store, problems: RecordProblems): JobRepository {
  // Saves of one job follow each other, so that an older state never overwrites a newer one.
  let lastSave: Promise<unknown> = Promise.resolve();
  return {
    nextId: async (submitter) => {
      const id = await count(store, COUNTER);
      const kept = submitter === undefined ? MAX_KEPT_JOBS : MAX_KEPT_JOBS_OF_USER;
      const ring = submitter === undefined ? 'root' : `user ${submitter}`;
      const slot = `${ring} ${(await count(store, `${COUNTER} of ${ring}`)) % kept}`;
      const oldest = await store.get(RINGS, slot);
      await store.commit([
        { collection: RINGS, id: slot, expected: 'any', value: id },
        ...(typeof oldest?.value === 'number' ? [forgetting(oldest.value)] : []),
      ]);
      return id;
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

/** The key of a job: keys in the order of text are jobs in the order of their ids. */
function keyOf(id: number): string {
  return String(id).padStart(10, '0');
}

function forgetting(id: number): Write {
  return { collection: COLLECTION, id: keyOf(id), expected: 'any', value: undefined };
}

/** The next number of a counter, which no other node gets. */
async function count(store: Store, id: string): Promise<number> {
  for (;;) {
    const stored = await store.get(COUNTERS, id);
    const next = typeof stored?.value === 'number' ? stored.value + 1 : 1;
    const expected = stored?.revision ?? 'absent';
    try {
      await store.commit([{ collection: COUNTERS, id, expected, value: next }]);
      return next;
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error;
    }
  }
}
