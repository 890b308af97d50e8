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
  /**
   * Gives a job its number and writes it, both or neither: what is refused has left nothing, and
   * when the store's answer was lost, nothing but what `make` gave last.
   */
  enter(make: (id: number) => JobRecord): Promise<JobRecord>;
  /** Saves of one job follow each other, so that an older state never overwrites a newer one. */
  save(job: JobRecord): Promise<void>;
  load(id: number): Promise<JobRecord | undefined>;
  /**
   * Forgets jobs that ended before a time.
   * @param isOwn whose they are: each node looks after what it ran
   * @returns how many
   */
  forgetOlder(beforeMs: number, isOwn: (node: string | undefined) => boolean): Promise<number>;
  /** All jobs, the oldest first. */
  list(): Promise<readonly JobRecord[]>;
}

export function createJobRepository(store: Store, problems: RecordProblems): JobRepository {
  const lastSaves = new Map<number, Promise<unknown>>();
  // Of jobs that have not ended. A write that was given up may still be on its way in a connection
  // that is lost: it expects a revision that is gone by then.
  const revisions = new Map<number, number>();

  const save = async (job: JobRecord): Promise<void> => {
    const id = keyOf(job.id);
    for (;;) {
      const known = revisions.get(job.id) ?? (await store.get(COLLECTION, id))?.revision;
      const expected = known ?? 'absent';
      try {
        const [revision = 0] = await store.commit([
          { collection: COLLECTION, id, expected, value: job },
        ]);
        if (job.endedAtMs === null) revisions.set(job.id, revision);
        else revisions.delete(job.id);
        return;
      } catch (error) {
        // It may have been written all the same, so the next one looks.
        revisions.delete(job.id);
        if (!(error instanceof StoreConflict)) throw error;
      }
    }
  };

  const planEntry = async (make: (id: number) => JobRecord): Promise<readonly Write[]> => {
    const number = await nextOf(store, COUNTER);
    const job = make(number.next);
    const { submitter } = job;
    const kept = submitter === undefined ? MAX_KEPT_JOBS : MAX_KEPT_JOBS_OF_USER;
    const ring = submitter === undefined ? 'root' : `user ${submitter}`;
    const place = await nextOf(store, `${COUNTER} of ${ring}`);
    const slot = `${ring} ${place.next % kept}`;
    const oldest = await store.get(RINGS, slot);
    const former = typeof oldest?.value === 'number' ? oldest.value : undefined;
    // Not an older one: another node was between our questions, and this commit will be refused.
    const forgotten = former !== undefined && former < job.id ? [forgetting(former)] : [];
    return [
      { collection: COLLECTION, id: keyOf(job.id), expected: 'absent', value: job },
      ...[number.write, place.write],
      { collection: RINGS, id: slot, expected: 'any', value: job.id },
      ...forgotten,
    ];
  };

  return {
    enter: async (make) => {
      for (;;) {
        const writes = await planEntry(make);
        try {
          const [revision = 0] = await store.commit(writes);
          // The first write is the job's.
          const job = writes[0]?.value as JobRecord;
          revisions.set(job.id, revision);
          return job;
        } catch (error) {
          if (!(error instanceof StoreConflict)) throw error;
          // A store that lost its last seconds counts from where it was: that number is taken.
          if (error.collection === COLLECTION) await skip(store, COUNTER);
        }
      }
    },
    save: async (job) => {
      const saving = (lastSaves.get(job.id) ?? Promise.resolve()).then(() => save(job));
      const last = saving.catch(() => undefined);
      lastSaves.set(job.id, last);
      try {
        await saving;
      } finally {
        if (lastSaves.get(job.id) === last) lastSaves.delete(job.id);
      }
    },
    load: async (id) => {
      const stored = await store.get(COLLECTION, keyOf(id));
      return stored && parseRecord(jobRecord, COLLECTION, stored);
    },
    forgetOlder: async (beforeMs, isOwn) => {
      const old = (await listRecords(store, COLLECTION, jobRecord, problems)).filter(
        ({ endedAtMs, node }) => endedAtMs !== null && endedAtMs < beforeMs && isOwn(node),
      );
      for (const { id } of old) await store.commit([forgetting(id)]);
      return old.length;
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

/** The next number of a counter, and the write that takes it from all others. */
async function nextOf(
  store: Store,
  id: string,
): Promise<{ readonly next: number; readonly write: Write }> {
  const stored = await store.get(COUNTERS, id);
  const next = typeof stored?.value === 'number' ? stored.value + 1 : 1;
  const expected = stored?.revision ?? 'absent';
  return { next, write: { collection: COUNTERS, id, expected, value: next } };
}

async function skip(store: Store, id: string): Promise<void> {
  try {
    await store.commit([(await nextOf(store, id)).write]);
  } catch (error) {
    if (!(error instanceof StoreConflict)) throw error;
  }
}
