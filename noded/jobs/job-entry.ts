import type { JobRecord } from '#shared/contract/job.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store, Write } from '#shared/store/store.ts';
import { MIB } from '#shared/units/bytes.ts';
import { type Counter, COUNTERS, JOB_NUMBERS, readCounter } from './job-numbers.ts';

export const JOBS = 'jobs';
/**
 * The last jobs of each submitter, by their numbers modulo how many are kept: a new one takes the
 * place of the oldest of the same.
 */
const RINGS = 'job-rings';
/** How many of root's ended jobs are kept. */
const MAX_KEPT_JOBS = 5000;
/** The same of each user of the remote API: nobody pushes out what others did. */
const MAX_KEPT_JOBS_OF_USER = 1000;
/** Jobs of one commit: the server does nothing else meanwhile. Fewer than any ring has. */
const MAX_AT_ONCE = 32;
/** The commit of those that are larger ends with the first beyond it. */
const MAX_CHARACTERS_AT_ONCE = MIB;

type MakeJob = (id: number) => JobRecord;

interface Waiting {
  readonly make: MakeJob;
  readonly resolve: (job: JobRecord) => void;
  readonly reject: (error: unknown) => void;
}

/** The key of a job: keys in the order of text are jobs in the order of their ids. */
export function keyOf(id: number): string {
  return String(id).padStart(10, '0');
}

export function forgetting(id: number): Write {
  return { collection: JOBS, id: keyOf(id), expected: 'any', value: undefined };
}

/**
 * Gives jobs their numbers and writes them. All numbers come from one counter: each node has one
 * commit at a time under way, with whatever was submitted during the one before, as jobs that take
 * their numbers one by one from each other get slower the more there are.
 * @param onEntered told before the submitter is
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

  /** Ends each of them, or has it wait again; fails never. */
  const enterNext = async (batch: readonly Waiting[]): Promise<void> => {
    let isSent = false;
    try {
      const entered = await enterSome(batch, () => {
        isSent = true;
      });
      waiting.unshift(...batch.slice(entered));
    } catch (error) {
      if (isAppError(error, 'STORE_UNAVAILABLE')) {
        // Nor are those told later that waited for them.
        for (const { reject } of [...batch, ...waiting.splice(0)]) reject(error);
      } else if (batch.length > 1 && (!isSent || isAppError(error, 'VALIDATION'))) {
        // One that cannot be written, or is too large, is no reason to refuse the others. Of any
        // other error of the commit nobody knows whether they are written.
        for (const one of batch) await enterNext([one]);
      } else for (const { reject } of batch) reject(error);
    }
  };

  /** @returns how many of them */
  const enterSome = async (batch: readonly Waiting[], onSent: () => void): Promise<number> => {
    for (;;) {
      const { jobs, writes } = await planEntries(
        store,
        batch.map(({ make }) => make),
      );
      try {
        onSent();
        // The first writes are those of the jobs.
        const revisions = await store.commit(writes);
        for (const [index, job] of jobs.entries()) {
          onEntered(job, revisions[index] ?? 0);
          batch[index]?.resolve(job);
        }
        return jobs.length;
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error;
        // A store that lost its last seconds counts from where it was: that number is taken.
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
  const byRing = Map.groupBy(jobs, ({ submitter }) => submitter);
  const rings = await Promise.all(
    [...byRing].map(([submitter, theirs]) => planRing(store, submitter, theirs)),
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

/** The places that some jobs of a submitter take, and what has to go for them. */
async function planRing(
  store: Pick<Store, 'get'>,
  submitter: string | undefined,
  jobs: readonly JobRecord[],
): Promise<readonly Write[]> {
  const kept = submitter === undefined ? MAX_KEPT_JOBS : MAX_KEPT_JOBS_OF_USER;
  const ring = submitter === undefined ? 'root' : `user ${submitter}`;
  const ringCounter = `${JOB_NUMBERS} of ${ring}`;
  const places = await readCounter(store, ringCounter);
  const slots = await Promise.all(
    jobs.map(async (job, index): Promise<readonly Write[]> => {
      const slot = `${ring} ${(places.last + 1 + index) % kept}`;
      const oldest = await store.get(RINGS, slot);
      const former = typeof oldest?.value === 'number' ? oldest.value : undefined;
      // Not an older one: another node was between our questions, and this commit will be refused.
      const forgotten = former !== undefined && former < job.id ? [forgetting(former)] : [];
      return [{ collection: RINGS, id: slot, expected: 'any', value: job.id }, ...forgotten];
    }),
  );
  return [take(ringCounter, places, jobs.length), ...slots.flat()];
}

/** The write that takes the next ones from all others. */
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
