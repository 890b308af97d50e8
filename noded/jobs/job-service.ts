import type { Preview } from './job-handler.ts';
import type { JobRecord, JobEvent } from '#shared/contract/job.ts';
import type { Opcode } from '#shared/contract/opcode.ts';
import type { Submitter } from '#shared/contract/submitter.ts';

export interface SubmitOptions {
  /** Ends the job before it changes anything. */
  readonly isDryRun?: boolean;
  /** Absent for root on the node's own socket, with all permissions. */
  readonly submitter?: Submitter | undefined;
  /**
   * Why the scheduler chose this node, which checks the choice again; absent if the request named
   * it.
   */
  readonly placement?: readonly string[] | undefined;
}

/** Manages jobs for an interface, on whichever node they run. */
export interface JobService {
  /**
   * Registers a job and starts it.
   * @returns its id, without waiting for the job
   * @throws AppError TOO_MANY_JOBS
   */
  submit(opcode: Opcode, options?: SubmitOptions): Promise<number>;
  /**
   * Runs the checks and prerequisites only.
   * @returns details of the effects, if the operation has any to show
   * @throws AppError the error with which the job would be refused
   */
  dryRun(opcode: Opcode, signal: AbortSignal): Promise<Preview>;
  /** @throws AppError JOB_NOT_FOUND; CONFLICT if it has ended */
  cancel(id: number): Promise<void>;
  /** @throws AppError JOB_NOT_FOUND */
  get(id: number): Promise<JobRecord>;
  list(): Promise<readonly JobRecord[]>;
  /** Yields the events of a job. Of a job that ended earlier, only its log and its end. */
  watch(id: number, signal: AbortSignal): AsyncGenerator<JobEvent>;
}

/** Overrides methods of the next service. The other methods stay as they are. */
export type JobLayer = (next: JobService) => Partial<JobService>;

/** Wraps a service in layers. The first layer is called first. */
export function layerJobs(layers: readonly JobLayer[], jobs: JobService): JobService {
  return layers.reduceRight<JobService>(
    (next, layer) => ({
      submit: (opcode, options) => next.submit(opcode, options),
      dryRun: (opcode, signal) => next.dryRun(opcode, signal),
      cancel: (id) => next.cancel(id),
      get: (id) => next.get(id),
      list: () => next.list(),
      watch: (id, signal) => next.watch(id, signal),
      ...layer(next),
    }),
    jobs,
  );
}
