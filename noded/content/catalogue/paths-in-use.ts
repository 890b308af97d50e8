import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { JobRecord } from '#shared/contract/job.ts';

export interface PathsInUseSources {
  readonly instances: { list(): Promise<readonly Pick<InstanceRecord, 'osImage'>[]> };
  readonly jobs: { list(): Promise<readonly Pick<JobRecord, 'input' | 'endedAtMs'>[]> };
}

/** Lists the images of instances, for reinstallation, and of unfinished jobs. */
export async function listPathsInUse(sources: PathsInUseSources): Promise<ReadonlySet<string>> {
  // Jobs are read first: a job that ends in between has left an instance.
  const jobs = (await sources.jobs.list()).filter(({ endedAtMs }) => endedAtMs === null);
  const named = [
    ...jobs.map(({ input }) => input['osImage']),
    ...(await sources.instances.list()).map(({ osImage }) => osImage),
  ];
  return new Set(named.filter((path) => typeof path === 'string'));
}
