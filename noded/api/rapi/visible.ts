import type { ListedOrphan } from '#shared/contract/api.ts';
import type { InstanceInfo } from '#shared/contract/instance.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import { isWithin, nameSubmitter } from '#shared/contract/submitter.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Overview } from '../../cluster/membership/overview.ts';
import type { JobService } from '../../jobs/job-service.ts';
import type { IndexedInstance, InstanceIndex } from '../../records/instance-index.ts';
import { noInstance } from '../../records/instance-repository.ts';
import type { RapiUser } from './users-file.ts';

export interface VisibleSources {
  readonly overview: Pick<Overview, 'instanceSlices' | 'instance' | 'orphans'>;
  readonly index: Pick<InstanceIndex, 'list'>;
  readonly jobs: Pick<JobService, 'get' | 'list'>;
}

/** The fields of a job that decide which users may see it. */
type JobFacts = Pick<JobRecord, 'id' | 'receivedAtMs' | 'instance' | 'submitter'>;

/**
 * Shows the records that a user may see. For a user bound to instances, other instances and their
 * jobs do not exist.
 */
export function createVisible({ overview, index, jobs }: VisibleSources) {
  const listFor = async ({ scope }: RapiUser): Promise<readonly IndexedInstance[]> =>
    (await index.list()).filter((each) => isWithin(scope, each));
  const filterJobs = async <Job extends JobFacts>(
    user: RapiUser,
    all: readonly Job[],
  ): Promise<readonly Job[]> => {
    if (user.scope === null) return all;
    const named = new Map((await listFor(user)).map((each) => [each.name, each]));
    const own = nameSubmitter({ user: user.name });
    return all.filter((job) => {
      if (job.submitter === own) return true;
      const holder = job.instance === null ? undefined : named.get(job.instance);
      return holder !== undefined && isAbout(holder, job);
    });
  };
  /** Returns the instances in slices, as they arrive. */
  const instanceSlices = async function* ({
    scope,
  }: RapiUser): AsyncGenerator<readonly InstanceInfo[]> {
    for await (const slice of overview.instanceSlices())
      yield slice.filter((each) => isWithin(scope, each));
  };
  return {
    instances: async (user: RapiUser): Promise<readonly InstanceInfo[]> =>
      (await Array.fromAsync(instanceSlices(user))).flat(),
    instanceSlices,
    instanceNames: async (user: RapiUser): Promise<readonly string[]> =>
      (await listFor(user)).map(({ name }) => name),
    /** @throws AppError INSTANCE_NOT_FOUND */
    instance: async ({ scope }: RapiUser, name: string): Promise<InstanceInfo> => {
      const found = await overview.instance(name);
      if (!isWithin(scope, found)) throw noInstance(name);
      return found;
    },
    /** Returns the orphans; none for a user bound to instances. */
    orphans: async ({ scope }: RapiUser): Promise<readonly ListedOrphan[]> =>
      scope === null ? overview.orphans() : [],
    filterJobs,
    jobs: async (user: RapiUser): Promise<readonly JobRecord[]> =>
      filterJobs(user, await jobs.list()),
    /** @throws AppError JOB_NOT_FOUND */
    job: async (user: RapiUser, id: number): Promise<JobRecord> => {
      const [job] = await filterJobs(user, [await jobs.get(id)]);
      if (job !== undefined) return job;
      throw new AppError('JOB_NOT_FOUND', `there is no job ${id}`, {
        hint: 'List the jobs: gnt-job list',
      });
    },
  };
}

export type Visible = ReturnType<typeof createVisible>;

/**
 * Returns true if a job is about this instance, not an earlier one of the same name. Compares job
 * numbers rather than times, since nodes' clocks differ.
 */
function isAbout(
  { namedAfterJob, createdAtMs }: IndexedInstance,
  { id, receivedAtMs }: JobFacts,
): boolean {
  return namedAfterJob === undefined ? receivedAtMs >= createdAtMs : id > namedAfterJob;
}
