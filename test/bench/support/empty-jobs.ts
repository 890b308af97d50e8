import { systemClock } from '#shared/clock/clock.ts';
import type { Opcode } from '#shared/contract/opcode.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import type { Store } from '#shared/store/store.ts';
import { createJobEngine, type JobEngine } from '../../../noded/jobs/job-engine.ts';
import type { JobHandlers } from '../../../noded/jobs/job-handler.ts';
import { createJobRepository } from '../../../noded/jobs/job-repository.ts';
import { createInstanceRepository } from '../../../noded/records/instance-repository.ts';
import { createTestOutcomes } from '../../noded/support/test-outcomes.ts';

const HANDLER = { prepare: () => Promise.resolve(() => Promise.resolve(null)) };
const OPCODE = {
  ...{ opcode: 'INSTANCE_SHUTDOWN', name: 'web1.example.com', timeoutS: 1 },
} as Opcode;

/** Creates a job engine whose jobs do nothing, to measure the cost of a job itself. */
export function createIdleEngine(nodeName: string, store: Store, outcomesDir: string): JobEngine {
  const problems = createRecordProblems(silentLogger);
  const repository = createJobRepository(store, problems);
  const instances = createInstanceRepository(store, systemClock, problems);
  return createJobEngine({
    ...{ nodeName, repository, logger: silentLogger, clock: systemClock },
    outcomes: createTestOutcomes(outcomesDir, repository, instances),
    authorize: () => Promise.resolve(),
    listHiddenValues: () => Promise.resolve([]),
    // The benchmark submits only this opcode.
    locksOf: () => [],
    handlers: { INSTANCE_SHUTDOWN: HANDLER } as unknown as JobHandlers,
  });
}

/** Runs `count` jobs, `atOnce` at a time. */
export async function runEmptyJobs(
  engine: JobEngine,
  count: number,
  atOnce: number,
): Promise<void> {
  const { signal } = new AbortController();
  let left = count;
  const submitter = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const id = await engine.submit(OPCODE);
      for await (const event of engine.watch(id, signal)) if (event.type === 'end') break;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, submitter));
}
