import { every } from '#shared/clock/every.ts';
import type { Clock } from '#shared/clock/clock.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { hasEnded, interruptedJob } from '../jobs/fail-interrupted.ts';
import type { JobEngine } from '../jobs/job-engine.ts';
import { interruptInstall } from '../records/install-states.ts';
import type { IndexedInstance } from '../records/instance-index.ts';
import { readIndexed } from '../records/read-indexed.ts';
import type { NodeRecords } from './start-records.ts';

export interface ReconcileDependencies {
  readonly records: Pick<NodeRecords, 'jobs' | 'instances' | 'index' | 'owns' | 'lastAwayAtMs'>;
  readonly engine: Pick<JobEngine, 'has'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const LOOK_INTERVAL_MS = 10_000;
/**
 * Time of frequent checks after the store was unavailable: a write that timed out may arrive late
 * from an old connection.
 */
const LATE_WRITES_MS = 60_000;
/** Interval of checks if the store was always available. */
const USUAL_INTERVAL_MS = 10 * 60_000;

const NOBODYS = 'the operation was refused because the store was not available';

/** Ends records of abandoned work on this node, by timer and when the store is available again. */
export function startReconciler(
  dependencies: ReconcileDependencies & {
    /** Clean up further leftovers of abandoned work. */
    readonly others: readonly (() => Promise<void>)[];
    /** Cleans up leftovers at the start, and at every tick of the timer. */
    readonly often: () => Promise<void>;
  },
): Disposable {
  const { records, clock, logger } = dependencies;
  let lastMs = clock.monotonicMs();
  const lookOften = (): Promise<void> =>
    dependencies
      .often()
      .catch((error: unknown) => logger.error('reconcile.failed', { err: error }));
  const look = async (): Promise<void> => {
    const nowMs = clock.monotonicMs();
    const awayAtMs = records.lastAwayAtMs();
    const isLate = awayAtMs !== null && nowMs - awayAtMs < LATE_WRITES_MS;
    const isUnseen = awayAtMs !== null && awayAtMs >= lastMs;
    if (!isLate && !isUnseen && nowMs - lastMs < USUAL_INTERVAL_MS) return;
    // Run in parallel: a failure of one must not prevent the others.
    const others = dependencies.others.map((settle) => settle());
    try {
      for (const one of await Promise.allSettled([reconcile(dependencies), ...others]))
        if (one.status === 'rejected') throw one.reason;
      lastMs = nowMs;
    } catch (error) {
      if (!isAppError(error, 'STORE_UNAVAILABLE')) logger.error('reconcile.failed', { err: error });
    }
  };
  const timers = new DisposableStack();
  timers.use(every(LOOK_INTERVAL_MS, lookOften, { startsNow: true }));
  timers.use(every(LOOK_INTERVAL_MS, look));
  return timers;
}

/**
 * Ends jobs and installations of this node that its engine does not know. Reads each record again
 * after asking the engine: work that ended in between is in the store then.
 */
export async function reconcile({
  records: { jobs, instances, index, owns },
  engine,
  clock,
  logger,
}: ReconcileDependencies): Promise<void> {
  const isNobodys = (job: JobRecord): boolean =>
    !hasEnded(job) && owns(job.node) && !engine.has(job.id);
  for (const { id } of (await jobs.list()).filter(isNobodys)) {
    const job = await jobs.load(id);
    if (job === undefined || hasEnded(job)) continue;
    logger.warn('job.nobodys', { job: id, summary: job.summary });
    await jobs.save(interruptedJob(job, NOBODYS, clock.now()));
  }
  const isInstalling = ({ primaryNode, installState }: IndexedInstance): boolean =>
    installState === 'installing' && owns(primaryNode);
  const slices = await Array.fromAsync(readIndexed({ index, instances }, isInstalling));
  for (const { uuid, installState, install } of slices.flat()) {
    if (installState !== 'installing' || install === null) continue;
    if (engine.has(install.jobId)) continue;
    logger.warn('install.nobodys', { instance: uuid, job: install.jobId });
    await instances.update(uuid, (current) =>
      current.installState === 'installing' && current.install?.jobId === install.jobId
        ? interruptInstall(current, NOBODYS, clock.now())
        : current,
    );
  }
}
