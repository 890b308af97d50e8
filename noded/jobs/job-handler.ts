import type { DryRunAccepted } from '#shared/contract/api.ts';
import type { HookBook } from '#shared/contract/hook-book.ts';
import type { InstallStage } from '#shared/contract/primitives.ts';
import type { Opcode, OpcodeName, OpcodeOf } from '#shared/contract/opcode.ts';

/**
 * What an operation reports while it runs. Nothing that it is given may hold a private or secret
 * value.
 */
export interface JobReporter {
  log(message: string, level?: 'info' | 'warn'): void;
  stageStarted(stage: InstallStage): void;
  stageFinished(stage: InstallStage, durationMs: number, summary: string): void;
  progress(activity: string, doneBytes: number, totalBytes: number | null): void;
  /** It waits for something other than locks, and for which jobs; null when it goes on. */
  waits(reason: string | null, jobs: readonly number[]): void;
  /** A line of a script's output; kept in the install log, not in the job. */
  output(stage: InstallStage, line: string): void;
  /** Output of a script that runs in a guest; not kept in the job. */
  scriptOutput(text: string): void;
}

export interface JobContext {
  readonly jobId: number;
  /** Aborted when the job is cancelled or the daemon stops; the reason is an AppError. */
  readonly signal: AbortSignal;
  readonly report: JobReporter;
}

/**
 * What `check` and `prerequisites` agreed on: run it, and its answer is the job's result (plain
 * JSON, no private values).
 */
export interface Execution {
  (context: JobContext): Promise<unknown>;
  /** What whoever only asks is told beside the yes. */
  readonly preview?: Preview;
}

export type Preview = Omit<DryRunAccepted, 'ok'>;

/** An execution that can say something of what it would do. */
export function withPreview(
  { hooks }: { readonly hooks: HookBook | null },
  execute: (context: JobContext) => Promise<unknown>,
): Execution {
  return hooks === null ? execute : Object.assign(execute, { preview: { hooks } });
}

/** An operation, in Ganeti's phases. Everything before the execution changes nothing. */
export interface JobHandler<Op extends Opcode> {
  /** Under the job's locks: refuses, or says what to run. @throws AppError */
  prepare(opcode: Op, signal: AbortSignal): Promise<Execution>;
}

export type JobHandlers = { readonly [Name in OpcodeName]: JobHandler<OpcodeOf<Name>> };

/** `INSTANCE_CREATE(web1.example.com)` */
export function summarizeOpcode(opcode: Opcode): string {
  return 'name' in opcode ? `${opcode.opcode}(${opcode.name})` : opcode.opcode;
}

/**
 * Looks up the handler of an opcode; the table is typed over the union, so this is where the type
 * is widened again.
 */
export function handlerOf(handlers: JobHandlers, opcode: Opcode): JobHandler<Opcode> {
  return handlers[opcode.opcode];
}
