import { silentLogger } from '#shared/log/log.ts';
import type { JobRepository } from '../../../noded/jobs/job-repository.ts';
import type { InstanceRepository } from '../../../noded/records/instance-repository.ts';
import { Outcomes } from '../../../noded/records/outcomes.ts';

/** Real ones, with their files in this folder. */
export function createTestOutcomes(
  dir: string,
  jobs: JobRepository,
  instances: InstanceRepository,
  signal: AbortSignal = new AbortController().signal,
): Outcomes {
  return new Outcomes({ dir, jobs, instances, signal, logger: silentLogger });
}
