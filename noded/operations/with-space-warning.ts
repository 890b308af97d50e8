import { DEFAULT_LOW_SPACE_PERCENT } from '#shared/contract/cluster-settings.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import {
  describePromise,
  describeSpace,
  findLowSpace,
  isOverpromised,
  SPACE_HINT,
} from '../host/low-space.ts';
import type { Execution, JobContext } from '../jobs/job-handler.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

type SpaceSources = Pick<
  OperationDependencies,
  'measurePlaces' | 'promiseOfDisks' | 'clusters' | 'logger'
>;

/** Adds warnings of low space to the end of a job, long before a guest pauses at a write. */
export function withSpaceWarning(execution: Execution, sources: SpaceSources): Execution {
  const execute = async (context: JobContext): Promise<unknown> => {
    const result = await execution(context);
    for (const warning of await findWarnings(sources)) context.report.log(warning, 'warn');
    return result;
  };
  return Object.assign(execute, execution.preview && { preview: execution.preview });
}

/** Returns no warnings if the space cannot be measured: the job itself has succeeded. */
async function findWarnings(sources: SpaceSources): Promise<readonly string[]> {
  try {
    return await lookForWarnings(sources);
  } catch (error) {
    sources.logger.warn('space.not-measured', { reason: messageOf(error) });
    return [];
  }
}

async function lookForWarnings({
  measurePlaces,
  promiseOfDisks,
  clusters,
}: SpaceSources): Promise<readonly string[]> {
  const { lowSpacePercent = DEFAULT_LOW_SPACE_PERCENT } = await clusters.load();
  if (lowSpacePercent === 0) return [];
  const places = await measurePlaces();
  const low = findLowSpace(places, lowSpacePercent).map(
    (one) => `only ${describeSpace(one)}: ${SPACE_HINT}`,
  );
  const ofDisks = places.find(({ place }) => place === 'disks');
  if (ofDisks === undefined) return low;
  const promise = { ...(await promiseOfDisks()), totalBytes: ofDisks.totalBytes };
  if (!isOverpromised(promise)) return low;
  return [...low, `${describePromise(promise)}: a guest pauses when it finds the file system full`];
}
