import { jobRecord, type JobRecord } from '#shared/contract/job.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import { listRecords, parseRecord, type RecordProblems } from '#shared/store/readable-records.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store } from '#shared/store/store.ts';
import { createJobEntry, forgetting, JOBS as COLLECTION, keyOf } from './job-entry.ts';

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
  const saves = new SerialQueue<number>();
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

  const enter = createJobEntry(store, (job, revision) => revisions.set(job.id, revision));

  return {
    enter,
    save: (job) => saves.run(job.id, () => save(job)),
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
