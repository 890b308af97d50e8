import type { JobEvent } from '#shared/contract/job.ts';
import type { Context } from '../terminal/context.ts';
import { formatClock } from '../render/format.ts';
import { createPaint, DEFAULT_COLUMNS } from '../terminal/terminal.ts';
import { type LiveOptions, renderFinished, renderLive, renderLog } from './live.ts';
import { createPlainReporter } from './plain.ts';
import { type JobProgress, startProgress } from './state.ts';

/**
 * Shows a job's progress on stderr, because stdout is for results, such as the output of a script
 * in a guest.
 */
export interface View {
  show(event: JobEvent, progress: JobProgress): void;
  /** Reports a lost connection that will be retried. */
  lost(): void;
  /** Keeps the shown lines and writes nothing more. */
  close(): void;
}

const FRAME_MS = 120;

/** @param print receives the output of a script in a guest */
export async function createView(
  context: Context,
  jobId: number,
  print: (text: string) => void,
): Promise<View> {
  return context.terminal.errors.isTerminal
    ? createLiveView(context, jobId, print)
    : createPlainView(context, jobId, print);
}

function createPlainView(context: Context, jobId: number, print: (text: string) => void): View {
  const report = createPlainReporter();
  let isLost = false;
  let isClosed = false;
  const write = (line: string): void => {
    if (!isClosed) context.note(`${formatClock(context.clock.now())} ${line}`);
  };
  return {
    show(event, progress) {
      isLost = false;
      for (const line of report(event, progress)) write(line);
      if (event.type === 'script-output' && !isClosed) print(event.text);
    },
    lost() {
      if (!isLost) write(`the node daemon does not respond; reconnecting to job ${jobId}`);
      isLost = true;
    },
    close() {
      isClosed = true;
    },
  };
}

async function createLiveView(
  context: Context,
  jobId: number,
  print: (text: string) => void,
): Promise<View> {
  // Loaded for terminals only.
  const { createLogUpdate } = await import('log-update');
  const { stderr, errors } = context.terminal;
  const paint = createPaint(errors);
  const draw = createLogUpdate(stderr);
  let progress = startProgress(jobId);
  let note: string | null = null;
  let isClosed = false;

  const options = (): LiveOptions => ({
    columns: stderr.columns ?? DEFAULT_COLUMNS,
    hasUnicode: errors.hasUnicode,
    paint,
  });
  const redraw = (): void => {
    if (isClosed) return;
    const lines = renderLive(progress, context.clock.now(), options());
    draw([...lines, ...(note === null ? [] : [note])].join('\n'));
  };
  const keep = (line: string): void => {
    draw.clear();
    stderr.write(`${line}\n`);
  };
  const timer = setInterval(redraw, FRAME_MS);
  stderr.on('resize', redraw);
  redraw();

  return {
    show(event, next) {
      progress = next;
      note = null;
      if (isClosed) return;
      if (event.type === 'stage-finished') keep(renderFinished(event, options()));
      if (event.type === 'script-output') {
        draw.clear();
        print(event.text);
      }
      if (event.type === 'log') keep(renderLog(event, options()).join('\n'));
      if (event.type === 'end') draw.clear();
      else redraw();
    },
    lost() {
      note = 'the node daemon does not respond; reconnecting';
      redraw();
    },
    close() {
      if (isClosed) return;
      isClosed = true;
      clearInterval(timer);
      stderr.off('resize', redraw);
      draw.clear();
      draw.done();
    },
  };
}
