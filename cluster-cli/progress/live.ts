import type { JobEvent } from '#shared/contract/job.ts';
import { formatBytes, formatDuration, formatEta } from '../render/format.ts';
import { sanitizeLine } from '../render/sanitize.ts';
import type { Paint } from '../terminal/terminal.ts';
import { describeStatus } from './plain.ts';
import { type Activity, estimateRemainingMs, type JobProgress } from './state.ts';

export interface LiveOptions {
  /** Width of the terminal. Lines are at least one column shorter, so that none wraps. */
  readonly columns: number;
  readonly hasUnicode: boolean;
  readonly paint: Paint;
}

const MAX_BAR_COLUMNS = 24;
const MIN_BAR_COLUMNS = 8;
/** Longest name of a stage, so that bars are aligned. */
const NAME_COLUMNS = 18;
const SPINNER = { unicode: '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏', ascii: '|/-\\' } as const;
const SPIN_MS = 120;

/**
 * Returns the lines that are redrawn while the job runs: one for each activity, and the last output
 * below.
 */
export function renderLive(
  progress: JobProgress,
  nowMs: number,
  options: LiveOptions,
): readonly string[] {
  const width = Math.max(1, options.columns - 1);
  const spinner = spinnerAt(nowMs, options.hasUnicode);
  const status = describeStatus(progress);
  const lead = (line: string): string =>
    line.startsWith(spinner) ? options.paint('cyan', spinner) + line.slice(spinner.length) : line;
  const cut = (line: string): string => truncate(line, width, options.hasUnicode);
  const lines = [
    ...(status === '' ? [] : [lead(cut([spinner, status].join(' ')))]),
    ...progress.activities.map((activity) =>
      lead(renderActivity(activity, nowMs, spinner, options)),
    ),
    ...(progress.output === null
      ? []
      : [options.paint('dim', cut(`  ${sanitizeLine(progress.output)}`))]),
  ];
  return lines.length > 0
    ? lines
    : [lead(cut(`${spinner} job ${progress.jobId} ${progress.status}`))];
}

/** Returns the lines of a log message, broken between words. Further lines are indented. */
export function renderLog(
  event: Extract<JobEvent, { type: 'log' }>,
  options: LiveOptions,
): readonly string[] {
  const isWarning = event.level === 'warn';
  const label = 'warning: ';
  const lines = wrap(
    `${isWarning ? label : ''}${sanitizeLine(event.message)}`,
    options.columns - 1,
  );
  if (!isWarning) return lines.map((line) => options.paint('dim', line));
  return lines.map((line, index) =>
    index === 0 && line.startsWith(label)
      ? `${options.paint('yellow', label.trimEnd())} ${line.slice(label.length)}`
      : line,
  );
}

/** Returns the permanent line of a finished stage. */
export function renderFinished(
  event: Extract<JobEvent, { type: 'stage-finished' }>,
  options: LiveOptions,
): string {
  const mark = options.hasUnicode ? '✔' : '+';
  const head = `${event.stage.padEnd(NAME_COLUMNS)} ${formatDuration(event.durationMs).padStart(11)}`;
  const text = truncate(
    `${mark} ${head}  ${sanitizeLine(event.summary)}`.trimEnd(),
    options.columns - 1,
    options.hasUnicode,
  );
  return text.startsWith(mark) ? options.paint('green', mark) + text.slice(mark.length) : text;
}

/** Renders an activity. A narrow terminal drops the last parts first. */
function renderActivity(
  activity: Activity,
  nowMs: number,
  spinner: string,
  options: LiveOptions,
): string {
  const width = Math.max(1, options.columns - 1);
  const cut = (text: string): string => truncate(text, width, options.hasUnicode);
  const elapsed = formatDuration(nowMs - activity.startedAtMs);
  const { doneBytes, totalBytes, bytesPerSecond } = activity;
  let line = `${spinner} ${sanitizeLine(activity.name).padEnd(NAME_COLUMNS)}`;
  const add = (part: string): void => {
    if (line.length + 1 + part.length <= width) line += ` ${part}`;
  };
  if (totalBytes === null || totalBytes === 0) {
    add(elapsed.padStart(11));
    if (doneBytes > 0) add(formatBytes(doneBytes));
    if (bytesPerSecond !== null) add(`${formatBytes(bytesPerSecond)}/s`);
    return cut(line.trimEnd());
  }
  const remainingMs = estimateRemainingMs(activity);
  const tail = [
    `${formatBytes(doneBytes)}/${formatBytes(totalBytes)}`,
    ...(bytesPerSecond === null ? [] : [`${formatBytes(bytesPerSecond)}/s`]),
    ...(remainingMs === null ? [] : [`ETA ${formatEta(remainingMs)}`]),
  ];
  const fraction = Math.min(1, doneBytes / totalBytes);
  const percent = `${Math.floor(100 * fraction)} %`.padStart(5);
  const wanted = [percent, ...tail].join(' ').length + 2;
  const room = Math.min(MAX_BAR_COLUMNS, width - line.length - wanted);
  const head = line.length;
  if (room >= MIN_BAR_COLUMNS) add(' '.repeat(room));
  for (const part of [percent, ...tail]) add(part);
  if (room < MIN_BAR_COLUMNS) return cut(line);
  // Insert the bar last, because its colour codes would count as columns.
  const bar = renderBar(fraction, room, options);
  return `${line.slice(0, head)} ${bar}${line.slice(head + 1 + room)}`;
}

function renderBar(fraction: number, columns: number, options: LiveOptions): string {
  const full = Math.floor(fraction * columns);
  const [done, left] = options.hasUnicode ? ['█', '░'] : ['#', '.'];
  return options.paint('cyan', done.repeat(full)) + left.repeat(columns - full);
}

function spinnerAt(nowMs: number, hasUnicode: boolean): string {
  const frames = [...SPINNER[hasUnicode ? 'unicode' : 'ascii']];
  return frames[Math.floor(nowMs / SPIN_MS) % frames.length] ?? '-';
}

/** Cuts printable text to a number of columns. A wide character counts as two. */
export function truncate(text: string, columns: number, hasUnicode: boolean): string {
  const ellipsis = hasUnicode ? '…' : '~';
  if (widthOf(text) <= columns) return text;
  let kept = '';
  let width = 0;
  for (const character of text) {
    width += widthOf(character);
    if (width > columns - 1) break;
    kept += character;
  }
  return columns < 1 ? '' : kept + ellipsis;
}

const INDENT = '  ';

/** Breaks text at spaces. A word longer than a line has its own line, which the terminal breaks. */
function wrap(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line.trim() === '' || widthOf(longer) <= columns) line = longer;
    else {
      lines.push(line);
      line = INDENT + word;
    }
  }
  return [...lines, line];
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{1f300}-\u{1faff}]|[\u{20000}-\u{3fffd}]/u;
const ZERO_WIDTH = /\p{Mn}|\u200b|\u200d|\ufe0f/u;

function widthOf(text: string): number {
  let width = 0;
  for (const character of text) {
    width += ZERO_WIDTH.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  }
  return width;
}
