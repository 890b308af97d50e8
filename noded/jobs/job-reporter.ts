import type { JobEvent, JobRecord } from '#shared/contract/job.ts';
import type { JobReporter } from './job-handler.ts';

export interface ReporterParts {
  /**
   * Hides the private and secret values of the opcode. Operations mask their reports by all values
   * in force; this is a second line of defence.
   */
  readonly mask: (text: string) => string;
  readonly now: () => number;
  /** Adds a line to the log of the record. */
  readonly keep: (line: Omit<JobRecord['log'][number], 'sequence'>) => void;
  readonly push: (event: JobEvent) => void;
  readonly waits: JobReporter['waits'];
}

export function createReporter({ mask, now, keep, push, waits }: ReporterParts): JobReporter {
  let pieces = 0;
  return {
    log: (text, level = 'info') => {
      const message = mask(text);
      const atMs = now();
      keep({ atMs, message, ...(level === 'warn' && { level }) });
      push({ type: 'log', atMs, message, level });
    },
    stageStarted: (stage) => push({ type: 'stage-started', atMs: now(), stage }),
    stageFinished: (stage, durationMs, text) =>
      push({ type: 'stage-finished', atMs: now(), stage, durationMs, summary: mask(text) }),
    progress: (text, doneBytes, totalBytes) =>
      push({ type: 'progress', atMs: now(), activity: mask(text), doneBytes, totalBytes }),
    waits,
    output: (stage, line) => push({ type: 'output', atMs: now(), stage, line: mask(line) }),
    scriptOutput: (text) => {
      pieces += 1;
      push({ type: 'script-output', atMs: now(), number: pieces, text: mask(text) });
    },
  };
}
