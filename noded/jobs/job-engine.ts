import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '#shared/clock/clock.ts';
import type { JobError, JobEvent, JobRecord, JobStatus } from '#shared/contract/job.ts';
import { redactOpcode, type Opcode } from '#shared/contract/opcode.ts';
import { nameSubmitter, type Submitter } from '#shared/contract/submitter.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { describeFailure } from './describe-failure.ts';
import { handlerOf, summarizeOpcode, type JobContext, type JobHandlers } from './job-handler.ts';
import type { JobRepository } from './job-repository.ts';
import type { JobService, SubmitOptions } from './job-service.ts';
import { JobStream } from './job-stream.ts';
import { LockTable } from './lock-table.ts';

/** Lines of a job's own log that are kept with it. */
const MAX_JOB_LOG_LINES = 2000;
/** Until the end of a job is saved again that the store was not there for. */
const SAVE_AGAIN_MS = 1000;
/**
 * Of one submitter; an opcode may hold documents of megabytes, and is in memory until its job ends.
 */
const MAX_UNENDED_JOBS = 50;
/** Owner of the locks of a dry run, which is no job. */
const DRY_RUN = 0;

export interface JobEngineDependencies {
  /** The name of the node that runs these jobs. */
  readonly nodeName: string;
  readonly repository: JobRepository;
  readonly handlers: JobHandlers;
  /** Under a job's locks: whether who asked for it may have it done. @throws AppError */
  readonly authorize: (opcode: Opcode, submitter: Submitter) => Promise<void>;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Called once per ended job, for metrics. */
  readonly onEnded?: (job: JobRecord) => void;
}

interface ActiveJob {
  record: JobRecord;
  readonly opcode: Opcode;
  readonly isDryRun: boolean;
  readonly submitter: Submitter | undefined;
  readonly controller: AbortController;
  readonly stream: JobStream;
  /** Nothing changes it any more; its record may still be on its way to the store. */
  hasEnded: boolean;
  done: Promise<void>;
}

/** Runs operations as jobs: check → lock → prerequisites → execute. */
export interface JobEngine extends JobService {
  /** The statuses of all jobs that have not ended. */
  activeStatuses(): readonly JobStatus[];
  /** Cancels what runs and waits for it. */
  stop(): Promise<void>;
}

export function createJobEngine(dependencies: JobEngineDependencies): JobEngine {
  return new LockingJobEngine(dependencies);
}

/**
 * INVARIANTS: an opcode with its private and secret values is only in `ActiveJob.opcode`, and gone
 * when the job ends; a job ends exactly once, in `success`, `error` or `canceled`; its locks are
 * free before `end` is told.
 */
class LockingJobEngine implements JobEngine {
  readonly #dependencies: JobEngineDependencies;
  readonly #locks = new LockTable();
  readonly #active = new Map<number, ActiveJob>();
  /** Ends of jobs that are on their way to the store. */
  readonly #unsaved = new Map<number, JobRecord>();
  readonly #entering: (string | undefined)[] = [];
  #isStopping = false;

  constructor(dependencies: JobEngineDependencies) {
    this.#dependencies = dependencies;
  }

  async submit(opcode: Opcode, options: SubmitOptions = {}): Promise<number> {
    if (this.#isStopping)
      throw new AppError('CONFLICT', 'the node daemon is stopping', {
        hint: 'try again when it runs',
      });
    const submitter = options.submitter && nameSubmitter(options.submitter);
    const id = await this.#nextId(submitter);
    const record: JobRecord = {
      id,
      status: 'queued',
      opcode: opcode.opcode,
      summary: summarizeOpcode(opcode),
      input: { ...redactOpcode(opcode), ...(options.isDryRun === true && { isDryRun: true }) },
      node: this.#dependencies.nodeName,
      ...(submitter !== undefined && { submitter }),
      instance: opcode.opcode.startsWith('INSTANCE_') && 'name' in opcode ? opcode.name : null,
      waitsFor: [],
      receivedAtMs: this.#dependencies.clock.now(),
      startedAtMs: null,
      endedAtMs: null,
      log: [],
      result: null,
      error: null,
    };
    const job: ActiveJob = {
      record,
      opcode,
      isDryRun: options.isDryRun ?? false,
      submitter: options.submitter,
      controller: new AbortController(),
      stream: new JobStream(),
      hasEnded: false,
      done: Promise.resolve(),
    };
    const saved = this.#dependencies.repository.save(record);
    job.done = saved.then(
      () => this.#run(job),
      () => void this.#active.delete(id),
    );
    this.#active.set(id, job);
    await saved;
    return id;
  }

  async dryRun(opcode: Opcode, signal: AbortSignal): Promise<void> {
    const handler = handlerOf(this.#dependencies.handlers, opcode);
    const held = await this.#locks.acquire(DRY_RUN, handler.locks(opcode), signal);
    try {
      await handler.prepare(opcode, signal);
    } finally {
      held.release();
    }
  }

  async cancel(id: number): Promise<void> {
    const job = this.#active.get(id);
    if (job === undefined || job.hasEnded) {
      const ended = await this.get(id);
      throw new AppError('CONFLICT', `job ${id} has ended already (${ended.status})`);
    }
    this.#dependencies.logger.info('job.cancel-requested', { job: id });
    this.#setStatus(job, 'canceling', []);
    job.controller.abort(new AppError('JOB_CANCELED', `job ${id} was cancelled`));
  }

  async get(id: number): Promise<JobRecord> {
    const record = this.#known(id) ?? (await this.#dependencies.repository.load(id));
    if (record === undefined) {
      throw new AppError('JOB_NOT_FOUND', `there is no job ${id}`, {
        hint: 'gnt-job list shows the jobs',
      });
    }
    return record;
  }

  activeStatuses(): readonly JobStatus[] {
    return [...this.#active.values()].map(({ record }) => record.status);
  }

  async list(): Promise<readonly JobRecord[]> {
    const stored = await this.#dependencies.repository.list();
    return stored.map((record) => this.#known(record.id) ?? record);
  }

  /** Those that are only getting their id count too: they come at once. */
  async #nextId(submitter: string | undefined): Promise<number> {
    const active = [...this.#active.values()].map(({ record }) => record.submitter);
    const theirs = [...active, ...this.#entering].filter((one) => one === submitter).length;
    if (submitter !== undefined && theirs >= MAX_UNENDED_JOBS) {
      throw new AppError('TOO_MANY_JOBS', `${submitter} has ${theirs} jobs that have not ended`, {
        hint: 'wait until some have',
      });
    }
    this.#entering.push(submitter);
    try {
      return await this.#dependencies.repository.nextId(submitter);
    } finally {
      this.#entering.splice(this.#entering.indexOf(submitter), 1);
    }
  }

  /** A job in a state that the store need not have yet. */
  #known(id: number): JobRecord | undefined {
    return this.#active.get(id)?.record ?? this.#unsaved.get(id);
  }

  async *watch(id: number, signal: AbortSignal): AsyncGenerator<JobEvent> {
    // Only the stream: a watcher that reads slowly must not keep the opcode in memory.
    const stream = this.#active.get(id)?.stream;
    if (stream !== undefined) {
      yield* stream.watch(signal);
      return;
    }
    const job = await this.get(id);
    for (const line of job.log)
      yield { type: 'log', atMs: line.atMs, message: line.message, level: 'info' };
    yield { type: 'end', atMs: job.endedAtMs ?? job.receivedAtMs, job };
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    const reason = new AppError('JOB_INTERRUPTED', 'the node daemon was stopped', {
      hint: 'submit the operation again',
    });
    const jobs = [...this.#active.values()];
    for (const job of jobs) job.controller.abort(reason);
    await Promise.all(jobs.map((job) => job.done));
  }

  async #run(job: ActiveJob): Promise<void> {
    const { logger, repository, onEnded } = this.#dependencies;
    let ending: { status: JobStatus; result: unknown; error: JobError | null };
    try {
      ending = { status: 'success', result: await this.#runPhases(job), error: null };
    } catch (error) {
      ending = this.#describeFailure(job, error);
    }
    job.hasEnded = true;
    job.record = {
      ...job.record,
      ...ending,
      waitsFor: [],
      waitsBecause: null,
      endedAtMs: this.#dependencies.clock.now(),
    };
    try {
      await repository.save(job.record);
    } catch (error) {
      logger.error('job.not-saved', { job: job.record.id, err: error });
      if (isAppError(error, 'STORE_UNAVAILABLE')) void this.#saveLater(job.record);
    }
    this.#active.delete(job.record.id);
    logger.info('job.ended', {
      job: job.record.id,
      status: ending.status,
      code: ending.error?.code,
    });
    onEnded?.(job.record);
    job.stream.push({ type: 'end', atMs: this.#dependencies.clock.now(), job: job.record });
  }

  /** The store is away: until it has the end of the job, this engine has. */
  async #saveLater(record: JobRecord): Promise<void> {
    this.#unsaved.set(record.id, record);
    while (this.#unsaved.has(record.id) && !this.#isStopping) {
      await sleep(SAVE_AGAIN_MS, undefined, { ref: false });
      try {
        await this.#dependencies.repository.save(record);
        this.#unsaved.delete(record.id);
      } catch (error) {
        if (!isAppError(error, 'STORE_UNAVAILABLE')) this.#unsaved.delete(record.id);
      }
    }
  }

  async #runPhases(job: ActiveJob): Promise<unknown> {
    const handler = handlerOf(this.#dependencies.handlers, job.opcode);
    const names = handler.locks(job.opcode);
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
      // Cancelled in the moment in which the locks came.
      job.controller.signal.throwIfAborted();
      job.record = { ...job.record, startedAtMs: this.#dependencies.clock.now() };
      this.#setStatus(job, 'running', []);
      if (job.submitter)
        await this.#asPrerequisite(this.#dependencies.authorize(job.opcode, job.submitter));
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

  /** While it is canceling, it stays so, whatever it waits for. */
  #setWaiting(job: ActiveJob, reason: string | null, jobs: readonly number[]): void {
    job.record = { ...job.record, waitsBecause: reason };
    if (job.record.status === 'canceling') return;
    this.#setStatus(job, reason === null ? 'running' : 'waiting', jobs);
  }

  #createReporter(job: ActiveJob): JobContext['report'] {
    const now = (): number => this.#dependencies.clock.now();
    return {
      log: (message, level = 'info') => {
        const line = { sequence: job.record.log.length + 1, atMs: now(), message };
        if (job.record.log.length < MAX_JOB_LOG_LINES) {
          job.record = { ...job.record, log: [...job.record.log, line] };
        }
        job.stream.push({ type: 'log', atMs: now(), message, level });
      },
      stageStarted: (stage) => job.stream.push({ type: 'stage-started', atMs: now(), stage }),
      stageFinished: (stage, durationMs, summary) =>
        job.stream.push({ type: 'stage-finished', atMs: now(), stage, durationMs, summary }),
      progress: (activity, doneBytes, totalBytes) =>
        job.stream.push({ type: 'progress', atMs: now(), activity, doneBytes, totalBytes }),
      waits: (reason, jobs) => this.#setWaiting(job, reason, jobs),
      output: (stage, line) => job.stream.push({ type: 'output', atMs: now(), stage, line }),
    };
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

  #describeFailure(
    job: ActiveJob,
    thrown: unknown,
  ): { status: JobStatus; result: null; error: JobError } {
    const isPrerequisite = thrown instanceof PrerequisiteFailure;
    const error = reasonOf(isPrerequisite ? thrown.cause : thrown, job.controller.signal);
    if (!isAppError(error))
      this.#dependencies.logger.error('job.failed-unexpectedly', {
        job: job.record.id,
        err: error,
      });
    return {
      status: isAppError(error, 'JOB_CANCELED') ? 'canceled' : 'error',
      result: null,
      error: describeFailure(error, isPrerequisite ? 'prerequisite' : 'execution'),
    };
  }
}

/**
 * Node's own functions end with an AbortError of theirs when the signal is aborted: what counts is
 * why it was.
 */
function reasonOf(error: unknown, signal: AbortSignal): unknown {
  const isAbort = error instanceof Error && error.name === 'AbortError';
  return isAbort && signal.aborted ? signal.reason : error;
}

/** Marks what was thrown before anything changed. */
class PrerequisiteFailure extends Error {
  constructor(cause: unknown) {
    super('prerequisite failed', { cause });
    this.name = 'PrerequisiteFailure';
  }
}
