import type { DryRunAccepted } from '#shared/contract/api.ts';
import type { HookBook } from '#shared/contract/hook-book.ts';
import type { InstallStage } from '#shared/contract/primitives.ts';
import type { Opcode, OpcodeName, OpcodeOf } from '#shared/contract/opcode.ts';

/** Reports of a running operation. Texts must not contain private or secret values. */
export interface JobReporter {
  log(message: string, level?: 'info' | 'warn'): void;
  stageStarted(stage: InstallStage): void;
  stageFinished(stage: InstallStage, durationMs: number, summary: string): void;
  progress(activity: string, doneBytes: number, totalBytes: number | null): void;
  /**
   * Reports that the job waits for something other than locks, and for which jobs; null ends the
   * wait.
   */
  waits(reason: string | null, jobs: readonly number[]): void;
  /** Reports a line of a script's output. The install log keeps it, not the job. */
  output(stage: InstallStage, line: string): void;
  /** Reports output of a script in a guest. The job does not keep it. */
  scriptOutput(text: string): void;
}

export interface JobContext {
  readonly jobId: number;
  /** Aborted when the job is cancelled or the daemon stops; the reason is an AppError. */
  readonly signal: AbortSignal;
  readonly report: JobReporter;
}

/** Runs a checked operation. Its answer is the job's result: plain JSON without private values. */
export interface Execution {
  (context: JobContext): Promise<unknown>;
  /** The answer to a dry run, beside its success. */
  readonly preview?: Preview;
}

export type Preview = Omit<DryRunAccepted, 'ok'>;

/** Adds the answer to a dry run to an execution. */
export function withPreview(
  { hooks }: { readonly hooks: HookBook | null },
  execute: (context: JobContext) => Promise<unknown>,
): Execution {
  return hooks === null ? execute : Object.assign(execute, { preview: { hooks } });
}

/** An operation in Ganeti's phases. Only the execution changes anything. */
export interface JobHandler<Op extends Opcode> {
  /**
   * Refuses the operation or returns its execution. Runs under the job's locks.
   * @throws AppError
   */
  prepare(opcode: Op, signal: AbortSignal): Promise<Execution>;
}

export type JobHandlers = { readonly [Name in OpcodeName]: JobHandler<OpcodeOf<Name>> };

/** Returns a text such as `INSTANCE_CREATE(web1.example.com)`. */
export function summarizeOpcode(opcode: Opcode): string {
  return 'name' in opcode ? `${opcode.opcode}(${opcode.name})` : opcode.opcode;
}

/** Returns the handler of an opcode, with the type of the table widened to any opcode. */
export function handlerOf(handlers: JobHandlers, opcode: Opcode): JobHandler<Opcode> {
  return handlers[opcode.opcode];
}
