import { jobRecord, type JobRecord } from '#shared/contract/job.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import {
  listRecords,
  parseRecord,
  type RecordProblems,
  sortOut,
} from '#shared/store/readable-records.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store } from '#shared/store/store.ts';
import { createJobEntry, forgetting, JOBS as COLLECTION, keyOf } from './job-entry.ts';

export function createJobRepository(store: Store, problems: RecordProblems) {
  const saves = new SerialQueue<number>();
  // Revisions of unfinished jobs. A write that timed out may still arrive from a lost connection.
  // It then expects an outdated revision and fails.
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
        // The write may have happened despite the error: read the revision next time.
        revisions.delete(job.id);
        if (!(error instanceof StoreConflict)) throw error;
      }
    }
  };

  /**
   * Gives a job its number and writes it, both or neither. A refusal leaves no record. If the
   * store's answer is lost, only the last record that `make` returned may be stored.
   */
  const enter = createJobEntry(store, (job, revision) => revisions.set(job.id, revision));

  return {
    enter,
    /**
     * Saves a job. Saves of one job run in order, so that an older state never overwrites a newer
     * one.
     */
    save: (job: JobRecord): Promise<void> => saves.run(job.id, () => save(job)),
    load: async (id: number): Promise<JobRecord | undefined> => {
      const stored = await store.get(COLLECTION, keyOf(id));
      return stored && parseRecord(jobRecord, COLLECTION, stored);
    },
    /** Returns the readable jobs of some ids. */
    loadSome: async (ids: readonly number[]): Promise<readonly JobRecord[]> => {
      const stored = await store.getSome(COLLECTION, ids.map(keyOf));
      return (await sortOut(jobRecord, COLLECTION, stored)).readable.map(({ value }) => value);
    },
    /**
     * Forgets jobs that ended before a time.
     * @param isOwn tells whether a node is this one: each node forgets the jobs that it ran
     * @returns the number of forgotten jobs
     */
    forgetOlder: async (
      beforeMs: number,
      isOwn: (node: string | undefined) => boolean,
    ): Promise<number> => {
      const old = (await listRecords(store, COLLECTION, jobRecord, problems)).filter(
        ({ endedAtMs, node }) => endedAtMs !== null && endedAtMs < beforeMs && isOwn(node),
      );
      for (const { id } of old) await store.commit([forgetting(id)]);
      return old.length;
    },
    /** Lists all jobs, the oldest first. */
    list: (): Promise<readonly JobRecord[]> => listRecords(store, COLLECTION, jobRecord, problems),
  };
}

export type JobRepository = ReturnType<typeof createJobRepository>;
