import type { JobEvent, JobRecord } from '#shared/contract/job.ts';
import type { Opcode, OpcodeInput, OpcodeName } from '#shared/contract/opcode.ts';
import { type Logger, silentLogger } from '#shared/log/log.ts';
import { createJobEngine, type JobEngine } from '../../../noded/jobs/job-engine.ts';
import type {
  Execution,
  JobContext,
  JobHandler,
  JobHandlers,
} from '../../../noded/jobs/job-handler.ts';
import { traitsOf } from '../../../noded/jobs/opcode-traits.ts';
import type { JobRepository } from '../../../noded/jobs/job-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { parseOpcode } from '../support/opcodes.ts';

export const names = [
  'INSTANCE_CREATE',
  'INSTANCE_REINSTALL',
  'INSTANCE_SET_PARAMS',
  'INSTANCE_REMOVE',
  'INSTANCE_RENAME',
  'INSTANCE_STARTUP',
  'INSTANCE_SHUTDOWN',
  'INSTANCE_REBOOT',
  'OS_SET_PARAMS',
  'CLUSTER_SET_PARAMS',
] as const satisfies readonly OpcodeName[];

/** Keeps every saved state, in order. */
export class RecordedJobs implements Omit<JobRepository, 'forgetOlder' | 'loadSome'> {
  readonly saved: JobRecord[] = [];
  #lastId = 0;
  beforeSave: (job: JobRecord) => Promise<void> = () => Promise.resolve();

  async enter(make: (id: number) => JobRecord): Promise<JobRecord> {
    this.#lastId += 1;
    const job = make(this.#lastId);
    await this.save(job);
    return job;
  }

  async save(job: JobRecord): Promise<void> {
    await this.beforeSave(job);
    this.saved.push(structuredClone(job));
  }

  load(id: number): Promise<JobRecord | undefined> {
    return Promise.resolve(this.saved.findLast((job) => job.id === id));
  }

  list(): Promise<readonly JobRecord[]> {
    return Promise.resolve([...new Map(this.saved.map((job) => [job.id, job])).values()]);
  }

  statuses(id: number): readonly string[] {
    return this.saved.filter((job) => job.id === id).map((job) => job.status);
  }
}

export interface Handling {
  readonly prepare?: (opcode: Opcode, signal: AbortSignal) => Promise<Execution | undefined>;
  readonly execute?: (context: JobContext) => Promise<unknown>;
  readonly repository?: RecordedJobs;
  readonly logger?: Logger;
  readonly listHiddenValues?: () => Promise<readonly string[]>;
}

/** Creates an engine in which every opcode locks its instance and runs the test's code. */
export function createEngine(handling: Handling) {
  const repository = handling.repository ?? new RecordedJobs();
  const handler: JobHandler<Opcode> = {
    prepare: async (opcode, signal) =>
      (await handling.prepare?.(opcode, signal)) ??
      handling.execute ??
      (() => Promise.resolve(null)),
  };
  // One handler for all: the engine does not distinguish opcodes.
  const handlers = Object.fromEntries(names.map((name) => [name, handler])) as JobHandlers;
  const engine = createJobEngine({
    authorize: () => Promise.resolve(),
    listHiddenValues: () => handling.listHiddenValues?.() ?? Promise.resolve([]),
    nodeName: 'node1',
    repository,
    outcomes: {
      endJob: (job) => repository.save(job).catch(() => undefined),
      unwrittenJob: () => undefined,
    },
    handlers,
    locksOf: (opcode) => traitsOf(opcode).locks(opcode, []),
    logger: handling.logger ?? silentLogger,
    clock: new ManualClock(),
  });
  return { engine, repository };
}

export const shutdown = (name = 'web1'): Opcode =>
  parseOpcode({ opcode: 'INSTANCE_SHUTDOWN', name } satisfies OpcodeInput);

export async function endOf(engine: JobEngine, id: number): Promise<JobRecord> {
  for await (const event of engine.watch(id, new AbortController().signal)) {
    if (event.type === 'end') return event.job;
  }
  throw new Error('the stream had no end');
}

export async function eventsOf(engine: JobEngine, id: number): Promise<JobEvent[]> {
  const events: JobEvent[] = [];
  for await (const event of engine.watch(id, new AbortController().signal)) events.push(event);
  return events;
}

/** Creates executions that signal their start and wait until they are released. */
export function createGate() {
  const opened = Promise.withResolvers<undefined>();
  const entered = Promise.withResolvers<undefined>();
  return {
    entered: entered.promise,
    open: () => opened.resolve(undefined),
    pass: async (): Promise<null> => {
      entered.resolve(undefined);
      await opened.promise;
      return null;
    },
  };
}
