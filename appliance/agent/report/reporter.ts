import type { InstallEvent } from '#shared/contract/install-event.ts';
import { MAX_INSTALL_LOG_BYTES, MAX_LOG_LINE_LENGTH } from '#shared/contract/install-event.ts';
import type { InstallStage } from '#shared/contract/primitives.ts';
import { isAppError, messageOf } from '#shared/errors/app-error.ts';
import type { StageFailure, StageObserver, StageReporter } from './stage.ts';

const MIN_PROGRESS_INTERVAL_MS = 1_000;
/**
 * Limit of script and hook output on the serial console, which passes some ten kilobytes a second
 * in an emulated machine while the agent waits. The host keeps only its end.
 */
const MAX_CONSOLE_BYTES = 64 * 1024;
const MAX_SUMMARY_LENGTH = 1024;
const MAX_MESSAGE_LENGTH = 4096;
const MAX_HINT_LENGTH = 1024;

export interface ReporterOptions {
  readonly send: (event: InstallEvent) => void;
  readonly print: (line: string) => void;
  readonly uptimeMs: () => number;
  readonly mask: (text: string) => string;
}

export interface Reporter extends StageObserver {
  /** @param dumpBytes of an export */
  result(failure: StageFailure | null, dumpBytes?: readonly number[]): void;
}

/**
 * Turns reports of stages into events for the host and lines for the serial console. All text is
 * masked first.
 */
export function createReporter(options: ReporterOptions): Reporter {
  const { send, print, uptimeMs } = options;
  const clean = (text: string, limit: number): string => options.mask(text).slice(0, limit);
  const stamp = (): string => (uptimeMs() / 1000).toFixed(2).padStart(7);
  let lastProgressAtMs = -Infinity;
  /** Remaining bytes for script and hook output in the log; negative after an overflow. */
  let roomBytes = MAX_INSTALL_LOG_BYTES;
  let consoleRoomBytes = MAX_CONSOLE_BYTES;

  /** Limits output of programs only; the agent's own lines are always printed. */
  function printOutput(line: string): void {
    if (consoleRoomBytes < 0) return;
    consoleRoomBytes -= line.length + 1;
    print(consoleRoomBytes < 0 ? 'further output is in the log file only' : line);
  }

  function reporterFor(stage: InstallStage): StageReporter {
    const log: StageReporter['log'] = (line, stream = 'agent') => {
      if (stream !== 'agent') {
        if (roomBytes < 0) return;
        roomBytes -= Math.min(line.length, MAX_LOG_LINE_LENGTH) + 1;
        if (roomBytes < 0) return log('the log is full, further output is dropped');
      }
      const text = clean(line, MAX_LOG_LINE_LENGTH);
      send({ type: 'log', atMs: uptimeMs(), stage, stream, line: text });
      (stream === 'agent' ? print : printOutput)(`${stamp()} ${stage}: ${text}`);
    };
    return {
      log,
      isFull: () => roomBytes < 0,
      progress(doneBytes, totalBytes) {
        const atMs = uptimeMs();
        if (atMs - lastProgressAtMs < MIN_PROGRESS_INTERVAL_MS) return;
        lastProgressAtMs = atMs;
        send({ type: 'progress', atMs, stage, doneBytes, totalBytes });
      },
    };
  }

  return {
    reporterFor,
    started(stage) {
      lastProgressAtMs = -Infinity;
      send({ type: 'stage-started', atMs: uptimeMs(), stage });
      print(`${stamp()} ${stage} …`);
    },
    finished(stage, summary) {
      const text = clean(summary, MAX_SUMMARY_LENGTH);
      send({ type: 'stage-finished', atMs: uptimeMs(), stage, summary: text });
      print(`${stamp()} ${stage} done: ${text}`);
    },
    result(failure, dumpBytes) {
      if (failure === null) {
        send({
          type: 'result',
          atMs: uptimeMs(),
          outcome: { status: 'success', ...(dumpBytes && { dumpBytes: [...dumpBytes] }) },
        });
        print(`${stamp()} result: success`);
        return;
      }
      const { stage, error } = failure;
      const code = isAppError(error) ? error.code : 'INTERNAL';
      const message = clean(messageOf(error), MAX_MESSAGE_LENGTH);
      const hint = isAppError(error) ? error.hint : undefined;
      send({
        type: 'result',
        atMs: uptimeMs(),
        outcome: {
          status: 'failure',
          stage,
          code,
          message,
          ...(hint !== undefined && { hint: clean(hint, MAX_HINT_LENGTH) }),
        },
      });
      print(`${stamp()} result: ${stage} failed, ${code}: ${message}`);
      if (!isAppError(error) && error instanceof Error) print(options.mask(error.stack ?? ''));
    },
  };
}
