import type { Preview } from './job-handler.ts';
import type { JobRecord, JobEvent } from '#shared/contract/job.ts';
import type { Opcode } from '#shared/contract/opcode.ts';
import type { Submitter } from '#shared/contract/submitter.ts';

export interface SubmitOptions {
  /** A job that ends, well or not, before anything is changed. */
  readonly isDryRun?: boolean;
  /** Absent when it is root on the node's own socket, who may do everything. */
  readonly submitter?: Submitter | undefined;
  /** Why a choice put it on this node, which judges that once more; absent: it was told to. */
  readonly placement?: readonly string[] | undefined;
}

/** Jobs as an interface asks for them, whichever node runs them. */
export interface JobService {
  /**
   * Registers a job and starts it.
   * @returns its id, at once
   * @throws AppError TOO_MANY_JOBS
   */
  submit(opcode: Opcode, options?: SubmitOptions): Promise<number>;
  /**
   * Checks and prerequisites only.
   * @returns what it would do, as far as there is something to say
   * @throws AppError what the job would be refused with
   */
  dryRun(opcode: Opcode, signal: AbortSignal): Promise<Preview>;
  /** @throws AppError JOB_NOT_FOUND; CONFLICT when it has ended */
  cancel(id: number): Promise<void>;
  /** @throws AppError JOB_NOT_FOUND */
  get(id: number): Promise<JobRecord>;
  list(): Promise<readonly JobRecord[]>;
  /** Of a job that ended before, only its log and its end are told. */
  watch(id: number, signal: AbortSignal): AsyncGenerator<JobEvent>;
}

/** Methods that go before those of the next service. A layer leaves the others as they are. */
export type JobLayer = (next: JobService) => Partial<JobService>;

/** Puts layers around jobs. The first one is called first. */
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
