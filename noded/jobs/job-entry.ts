import { isDryRun, type JobRecord } from '#shared/contract/job.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store, Write } from '#shared/store/store.ts';
import { MIB } from '#shared/units/bytes.ts';
import { type Counter, COUNTERS, JOB_NUMBERS, readCounter } from './job-numbers.ts';

export const JOBS = 'jobs';
/**
 * The last jobs of each submitter, by their numbers modulo the ring's size: a new job replaces the
 * oldest job of its slot.
 */
const RINGS = 'job-rings';
/** Ended jobs of root that are kept. */
const MAX_KEPT_JOBS = 5000;
/**
 * Ended jobs of each remote API user that are kept. Separate rings prevent users from displacing
 * the jobs of others.
 */
const MAX_KEPT_JOBS_OF_USER = 1000;
/** Ended checks of each submitter that are kept: the forms of the page check after each change. */
const MAX_KEPT_DRY_RUNS = 100;
/** Jobs in one commit: Redis does nothing else meanwhile. Smaller than any ring. */
const MAX_AT_ONCE = 32;
/** A commit takes no further job once its jobs have this many characters. */
const MAX_CHARACTERS_AT_ONCE = MIB;

type MakeJob = (id: number) => JobRecord;

interface Waiting {
  readonly make: MakeJob;
  readonly resolve: (job: JobRecord) => void;
  readonly reject: (error: unknown) => void;
}

/** Returns the key of a job. Sorting keys as text sorts jobs by id. */
export function keyOf(id: number): string {
  return String(id).padStart(10, '0');
}

export function forgetting(id: number): Write {
  return { collection: JOBS, id: keyOf(id), expected: 'any', value: undefined };
}

/**
 * Gives jobs their numbers and writes them. All numbers come from one counter, so parallel commits
 * would conflict, and slow down as jobs increase. Each node therefore has one commit under way,
 * with all jobs that arrived during the previous one.
 * @param onEntered called before the submitter gets the answer
 * @see JobRepository.enter
 */
export function createJobEntry(
  store: Pick<Store, 'get' | 'commit'>,
  onEntered: (job: JobRecord, revision: number) => void,
): (make: MakeJob) => Promise<JobRecord> {
  const waiting: Waiting[] = [];
  let isBusy = false;

  const work = async (): Promise<void> => {
    if (isBusy) return;
    isBusy = true;
    while (waiting.length > 0) await enterNext(waiting.splice(0, MAX_AT_ONCE));
    isBusy = false;
  };

  /** Ends or requeues each job of a batch. Never rejects. */
  const enterNext = async (batch: readonly Waiting[]): Promise<void> => {
    let isSent = false;
    try {
      const entered = await enterSome(batch, () => {
        isSent = true;
      });
      waiting.unshift(...batch.slice(entered));
    } catch (error) {
      if (isAppError(error, 'STORE_UNAVAILABLE')) {
        // Reject the waiting jobs, too: they would only wait for the same error.
        for (const { reject } of [...batch, ...waiting.splice(0)]) reject(error);
      } else if (batch.length > 1 && (!isSent || isAppError(error, 'VALIDATION'))) {
        // Retry one by one: an invalid or large job must not fail the others. After other errors of
        // a commit it is unknown whether the jobs are written.
        for (const one of batch) await enterNext([one]);
      } else for (const { reject } of batch) reject(error);
    }
  };

  /** @returns the number of entered jobs */
  const enterSome = async (batch: readonly Waiting[], onSent: () => void): Promise<number> => {
    for (;;) {
      const { jobs, writes } = await planEntries(
        store,
        batch.map(({ make }) => make),
      );
      try {
        onSent();
        // The first writes are the jobs.
        const revisions = await store.commit(writes);
        for (const [index, job] of jobs.entries()) {
          onEntered(job, revisions[index] ?? 0);
          batch[index]?.resolve(job);
        }
        return jobs.length;
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error;
        // A store that lost its last seconds has an old counter, and the number is taken.
        if (error.collection === JOBS) await skip(store, JOB_NUMBERS);
      }
    }
  };

  return (make) =>
    new Promise((resolve, reject) => {
      waiting.push({ make, resolve, reject });
      void work();
    });
}

interface PlannedEntries {
  readonly jobs: readonly JobRecord[];
  readonly writes: readonly Write[];
}

async function planEntries(
  store: Pick<Store, 'get'>,
  makes: readonly MakeJob[],
): Promise<PlannedEntries> {
  const numbers = await readCounter(store, JOB_NUMBERS);
  const jobs: JobRecord[] = [];
  let characters = 0;
  for (const [index, make] of makes.entries()) {
    if (characters > MAX_CHARACTERS_AT_ONCE) break;
    const job = make(numbers.last + 1 + index);
    characters += JSON.stringify(job).length;
    jobs.push(job);
  }
  const byRing = Map.groupBy(jobs, ringOf);
  const rings = await Promise.all(
    [...byRing].map(([ring, theirs]) => planRing(store, ring, theirs)),
  );
  return {
    jobs,
    writes: [
      ...jobs.map((job): Write => ({
        ...{ collection: JOBS, id: keyOf(job.id) },
        ...{ expected: 'absent', value: job },
      })),
      take(JOB_NUMBERS, numbers, jobs.length),
      ...rings.flat(),
    ],
  };
}

function ringOf(job: JobRecord): string {
  const ring = job.submitter === undefined ? 'root' : `user ${job.submitter}`;
  return isDryRun(job) ? `dry runs of ${ring}` : ring;
}

/** Plans the slots of the jobs of a ring, and the removal of the jobs in them. */
async function planRing(
  store: Pick<Store, 'get'>,
  ring: string,
  jobs: readonly JobRecord[],
): Promise<readonly Write[]> {
  const kept = Math.min(...jobs.map(keptOf));
  const ringCounter = `${JOB_NUMBERS} of ${ring}`;
  const places = await readCounter(store, ringCounter);
  const slots = await Promise.all(
    jobs.map(async (job, index): Promise<readonly Write[]> => {
      const slot = `${ring} ${(places.last + 1 + index) % kept}`;
      const oldest = await store.get(RINGS, slot);
      const former = typeof oldest?.value === 'number' ? oldest.value : undefined;
      // A newer number means that another node wrote between the reads: this commit will be
      // refused.
      const forgotten = former !== undefined && former < job.id ? [forgetting(former)] : [];
      return [{ collection: RINGS, id: slot, expected: 'any', value: job.id }, ...forgotten];
    }),
  );
  return [take(ringCounter, places, jobs.length), ...slots.flat()];
}

function keptOf(job: JobRecord): number {
  if (isDryRun(job)) return MAX_KEPT_DRY_RUNS;
  return job.submitter === undefined ? MAX_KEPT_JOBS : MAX_KEPT_JOBS_OF_USER;
}

/** Returns the write that takes the next numbers of a counter. */
function take(id: string, { last, expected }: Counter, count: number): Write {
  return { collection: COUNTERS, id, expected, value: last + count };
}

async function skip(store: Pick<Store, 'get' | 'commit'>, id: string): Promise<void> {
  try {
    await store.commit([take(id, await readCounter(store, id), 1)]);
  } catch (error) {
    if (!(error instanceof StoreConflict)) throw error;
  }
}
