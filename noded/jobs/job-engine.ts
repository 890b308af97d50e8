import type { Clock } from '#shared/clock/clock.ts';
import type { JobError, JobEvent, JobRecord, JobStatus } from '#shared/contract/job.ts';
import type { Opcode } from '#shared/contract/opcode.ts';
import { redactOpcode } from '#shared/contract/redact-opcode.ts';
import { nameSubmitter, type Submitter } from '#shared/contract/submitter.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { createMaskInTurns } from '#shared/secret/mask.ts';
import { describeFailure, maskFailure } from './describe-failure.ts';
import { hintAfterInterrupt } from './fail-interrupted.ts';
import {
  handlerOf,
  summarizeOpcode,
  type JobContext,
  type JobHandlers,
  type Preview,
} from './job-handler.ts';
import type { JobRepository } from './job-repository.ts';
import type { JobService, SubmitOptions } from './job-service.ts';
import { namesInstance, traitsOf } from './opcode-traits.ts';
import { listOpcodeValues } from './opcode-values.ts';
import { createReporter } from './job-reporter.ts';
import { JobStream, replayEnded } from './job-stream.ts';
import { RecentStreams } from './recent-streams.ts';
import { LockTable } from './lock-table.ts';
import {
  createLogUnexpected,
  type LogUnexpected,
  type LogUnexpectedDependencies,
} from './log-unexpected.ts';

/** Lines of a job's log in its record. */
const MAX_JOB_LOG_LINES = 2000;
/**
 * Unfinished jobs per submitter. An opcode may hold megabytes of documents, and stays in memory
 * until its job ends.
 */
const MAX_UNENDED_JOBS = 50;
/** Owner of the locks of a dry run, which is not a job. */
const DRY_RUN = 0;

export interface JobEngineDependencies extends LogUnexpectedDependencies {
  readonly nodeName: string;
  readonly repository: Omit<JobRepository, 'forgetOlder' | 'loadSome'>;
  readonly outcomes: JobOutcomes;
  readonly handlers: JobHandlers;
  /** Returns the locks of a job, such as `instance/web1.example.com`. */
  readonly locksOf: (opcode: Opcode) => readonly string[];
  /** Checks the submitter's permission, under the job's locks. @throws AppError */
  readonly authorize: (opcode: Opcode, submitter: Submitter, job: number) => Promise<void>;
  readonly clock: Clock;
  /** Called once per ended job, for metrics. */
  readonly onEnded?: (job: JobRecord) => void;
}

/** Stores the ends of jobs even while the store is unavailable. */
export interface JobOutcomes {
  /** Resolves when the end can no longer be lost. */
  endJob(job: JobRecord): Promise<void>;
  /** Returns the end of a job that the store does not have yet. */
  unwrittenJob(id: number): JobRecord | undefined;
}

interface ActiveJob {
  record: JobRecord;
  readonly opcode: Opcode;
  readonly isDryRun: boolean;
  readonly submitter: Submitter | undefined;
  readonly controller: AbortController;
  /** Hides the private and secret values of the opcode. */
  readonly mask: (text: string) => string;
  readonly stream: JobStream;
  /** The record is final, but may not be in the store yet. */
  hasEnded: boolean;
  done: Promise<void>;
}

/** A job whose first record is being written. */
interface Entry {
  readonly submitter: string | undefined;
  /** The latest number that was tried. */
  id: number | null;
  readonly left: PromiseWithResolvers<undefined>;
}

/** Runs operations as jobs: check → lock → prerequisites → execute. */
export interface JobEngine extends JobService {
  /** Returns whether this engine controls the job. */
  has(id: number): boolean;
  activeStatuses(): readonly JobStatus[];
  /** Cancels running jobs and waits for their ends. */
  stop(): Promise<void>;
}

export function createJobEngine(dependencies: JobEngineDependencies): JobEngine {
  return new LockingJobEngine(dependencies);
}

/**
 * INVARIANTS: an opcode with its private and secret values is only in `ActiveJob.opcode`, and gone
 * when the job ends; a job ends exactly once, in `success`, `error` or `canceled`; its locks are
 * free before its `end` event.
 */
class LockingJobEngine implements JobEngine {
  readonly #dependencies: JobEngineDependencies;
  readonly #log: LogUnexpected;
  readonly #locks = new LockTable();
  readonly #active = new Map<number, ActiveJob>();
  readonly #entering = new Set<Entry>();
  readonly #recent = new RecentStreams();
  #isStopping = false;

  constructor(dependencies: JobEngineDependencies) {
    this.#dependencies = dependencies;
    this.#log = createLogUnexpected(dependencies);
  }

  async submit(opcode: Opcode, options: SubmitOptions = {}): Promise<number> {
    if (this.#isStopping)
      throw new AppError('CONFLICT', 'the node daemon is stopping', {
        hint: 'Try again when it runs.',
      });
    const submitter = options.submitter && nameSubmitter(options.submitter);
    this.#refuseTooMany(submitter);
    const entry: Entry = { submitter, id: null, left: Promise.withResolvers() };
    this.#entering.add(entry);
    try {
      const mask = await createMaskInTurns(listOpcodeValues(opcode));
      const record = await this.#dependencies.repository.enter((id) => {
        entry.id = id;
        return this.#describe(id, opcode, submitter, options.isDryRun === true);
      });
      const job: ActiveJob = {
        record,
        opcode,
        isDryRun: options.isDryRun ?? false,
        submitter: options.submitter,
        controller: new AbortController(),
        mask,
        stream: new JobStream(),
        hasEnded: false,
        done: Promise.resolve(),
      };
      this.#active.set(record.id, job);
      for (const line of options.placement ?? []) this.#createReporter(job).log(line);
      if (this.#isStopping) job.controller.abort(stopped(job));
      job.done = this.#run(job);
      return record.id;
    } finally {
      this.#entering.delete(entry);
      entry.left.resolve(undefined);
    }
  }

  #describe(
    id: number,
    opcode: Opcode,
    submitter: string | undefined,
    isDryRun: boolean,
  ): JobRecord {
    return {
      id,
      status: 'queued',
      opcode: opcode.opcode,
      summary: summarizeOpcode(opcode),
      input: { ...redactOpcode(opcode), ...(isDryRun && { isDryRun: true }) },
      node: this.#dependencies.nodeName,
      ...(submitter !== undefined && { submitter }),
      instance:
        namesInstance(opcode) && traitsOf(opcode).boundUsers !== 'neither' ? opcode.name : null,
      waitsFor: [],
      receivedAtMs: this.#dependencies.clock.now(),
      startedAtMs: null,
      endedAtMs: null,
      log: [],
      result: null,
      error: null,
    };
  }

  async dryRun(opcode: Opcode, signal: AbortSignal): Promise<Preview> {
    const handler = handlerOf(this.#dependencies.handlers, opcode);
    const names = this.#dependencies.locksOf(opcode);
    const held = await this.#locks.acquire(DRY_RUN, names, signal);
    try {
      return (await handler.prepare(opcode, signal)).preview ?? {};
    } catch (error) {
      await this.#log(error, opcode, { dryRun: opcode.opcode });
      throw maskFailure(error, await createMaskInTurns(listOpcodeValues(opcode)));
    } finally {
      held.release();
    }
  }

  async cancel(id: number): Promise<void> {
    const job = this.#active.get(id);
    if (job === undefined || job.hasEnded) {
      const ended = await this.get(id);
      throw new AppError('CONFLICT', `job ${id} has already ended (${ended.status})`);
    }
    this.#dependencies.logger.info('job.cancel-requested', { job: id });
    this.#setStatus(job, 'canceling', []);
    job.controller.abort(new AppError('JOB_CANCELED', `job ${id} was cancelled`));
  }

  async get(id: number): Promise<JobRecord> {
    const record = this.#known(id) ?? (await this.#dependencies.repository.load(id));
    if (record === undefined) {
      throw new AppError('JOB_NOT_FOUND', `there is no job ${id}`, {
        hint: 'List the jobs: gnt-job list',
      });
    }
    return record;
  }

  has(id: number): boolean {
    const isEntering = [...this.#entering].some((entry) => entry.id === id);
    return isEntering || this.#known(id) !== undefined;
  }

  activeStatuses(): readonly JobStatus[] {
    return [...this.#active.values()].map(({ record }) => record.status);
  }

  async list(): Promise<readonly JobRecord[]> {
    const stored = await this.#dependencies.repository.list();
    return stored.map((record) => this.#known(record.id) ?? record);
  }

  /** Counts jobs that are being written, too: a burst arrives at once. */
  #refuseTooMany(submitter: string | undefined): void {
    if (submitter === undefined) return;
    const active = [...this.#active.values()].map(({ record }) => record.submitter);
    const entering = [...this.#entering].map((one) => one.submitter);
    const theirs = [...active, ...entering].filter((one) => one === submitter).length;
    if (theirs < MAX_UNENDED_JOBS) return;
    throw new AppError(
      'TOO_MANY_JOBS',
      `${submitter} has ${theirs} unfinished jobs, which is the limit`,
      {
        hint: 'Wait until some have ended.',
      },
    );
  }

  /** Returns a job whose state may be newer than the store's. */
  #known(id: number): JobRecord | undefined {
    return this.#active.get(id)?.record ?? this.#dependencies.outcomes.unwrittenJob(id);
  }

  async *watch(id: number, signal: AbortSignal): AsyncGenerator<JobEvent> {
    // Keep only the stream: a slow watcher must not keep the opcode in memory.
    const stream = this.#active.get(id)?.stream ?? this.#recent.get(id);
    if (stream !== undefined) {
      yield* stream.watch(signal);
      return;
    }
    yield* replayEnded(await this.get(id));
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const job of this.#active.values()) job.controller.abort(stopped(job));
    // Jobs that are being written end as soon as they begin.
    await Promise.all([...this.#entering].map((entry) => entry.left.promise));
    await Promise.all([...this.#active.values()].map((job) => job.done));
  }

  async #run(job: ActiveJob): Promise<void> {
    const { logger, outcomes, onEnded } = this.#dependencies;
    let ending: { status: JobStatus; result: unknown; error: JobError | null };
    try {
      ending = { status: 'success', result: await this.#runPhases(job), error: null };
    } catch (error) {
      ending = await this.#describeFailure(job, error);
    }
    job.hasEnded = true;
    job.record = {
      ...job.record,
      ...ending,
      waitsFor: [],
      waitsBecause: null,
      endedAtMs: this.#dependencies.clock.now(),
    };
    await outcomes.endJob(job.record);
    this.#recent.keep(job.record.id, job.stream);
    this.#active.delete(job.record.id);
    logger.info('job.ended', {
      job: job.record.id,
      status: ending.status,
      code: ending.error?.code,
    });
    onEnded?.(job.record);
    job.stream.push({ type: 'end', atMs: this.#dependencies.clock.now(), job: job.record });
  }

  async #runPhases(job: ActiveJob): Promise<unknown> {
    const handler = handlerOf(this.#dependencies.handlers, job.opcode);
    const names = this.#dependencies.locksOf(job.opcode);
    const blockers = this.#locks.blockersOf(names);
    if (blockers.length > 0) {
      this.#setStatus(
        job,
        'waiting',
        blockers.filter((id) => id !== DRY_RUN),
      );
    }
    const held = await this.#locks.acquire(job.record.id, names, job.controller.signal);
    try {
      // The job may be cancelled at the moment in which it gets its locks.
      job.controller.signal.throwIfAborted();
      job.record = { ...job.record, startedAtMs: this.#dependencies.clock.now() };
      this.#setStatus(job, 'running', []);
      if (job.submitter)
        await this.#asPrerequisite(
          this.#dependencies.authorize(job.opcode, job.submitter, job.record.id),
        );
      const execution = await this.#asPrerequisite(
        handler.prepare(job.opcode, job.controller.signal),
      );
      job.controller.signal.throwIfAborted();
      if (job.isDryRun) return null;
      const context: JobContext = {
        jobId: job.record.id,
        signal: job.controller.signal,
        report: this.#createReporter(job),
      };
      return await execution(context);
    } finally {
      held.release();
    }
  }

  async #asPrerequisite<T>(preparation: Promise<T>): Promise<T> {
    try {
      return await preparation;
    } catch (error) {
      if (isAppError(error, 'JOB_CANCELED') || isAppError(error, 'JOB_INTERRUPTED')) throw error;
      throw new PrerequisiteFailure(error);
    }
  }

  /** Sets the reason of waiting. A job in status `canceling` keeps it. */
  #setWaiting(job: ActiveJob, reason: string | null, jobs: readonly number[]): void {
    job.record = { ...job.record, waitsBecause: reason };
    if (job.record.status === 'canceling') return;
    this.#setStatus(job, reason === null ? 'running' : 'waiting', jobs);
  }

  #createReporter(job: ActiveJob): JobContext['report'] {
    return createReporter({
      mask: job.mask,
      now: () => this.#dependencies.clock.now(),
      keep: (line) => {
        const { log } = job.record;
        if (log.length >= MAX_JOB_LOG_LINES) return;
        job.record = { ...job.record, log: [...log, { sequence: log.length + 1, ...line }] };
      },
      push: (event) => job.stream.push(event),
      waits: (reason, jobs) => this.#setWaiting(job, reason, jobs),
    });
  }

  #setStatus(job: ActiveJob, status: JobStatus, waitsFor: readonly number[]): void {
    job.record = { ...job.record, status, waitsFor: [...waitsFor] };
    job.stream.push({
      type: 'status',
      atMs: this.#dependencies.clock.now(),
      status,
      waitsFor: [...waitsFor],
      ...(job.record.waitsBecause != null && { waitsBecause: job.record.waitsBecause }),
    });
    this.#dependencies.repository.save(job.record).catch((error: unknown) => {
      this.#dependencies.logger.error('job.not-saved', { job: job.record.id, err: error });
    });
  }

  async #describeFailure(
    job: ActiveJob,
    thrown: unknown,
  ): Promise<{ status: JobStatus; result: null; error: JobError }> {
    const isPrerequisite = thrown instanceof PrerequisiteFailure;
    const error = reasonOf(isPrerequisite ? thrown.cause : thrown, job.controller.signal);
    const { mask, opcode, record } = job;
    await this.#log(error, opcode, { job: record.id });
    const phase = isPrerequisite ? 'prerequisite' : 'execution';
    return {
      status: isAppError(error, 'JOB_CANCELED') ? 'canceled' : 'error',
      result: null,
      error: describeFailure(error, { id: record.id, phase, mask }),
    };
  }
}

function stopped({ opcode }: Pick<ActiveJob, 'opcode'>): AppError {
  return new AppError('JOB_INTERRUPTED', 'the node daemon was stopped', {
    hint: hintAfterInterrupt(opcode, 'Submit the operation again.'),
  });
}

/** Returns the signal's reason in place of the AbortError that Node's functions throw. */
function reasonOf(error: unknown, signal: AbortSignal): unknown {
  const isAbort = error instanceof Error && error.name === 'AbortError';
  return isAbort && signal.aborted ? signal.reason : error;
}

/** Marks a failure before any change. */
class PrerequisiteFailure extends Error {
  constructor(cause: unknown) {
    super('prerequisite failed', { cause });
    this.name = 'PrerequisiteFailure';
  }
}
