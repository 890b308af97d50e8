import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JobEvent } from '#shared/contract/job.ts';
import {
  renderFinished,
  renderLive,
  renderLog,
  truncate,
} from '../../../cluster-cli/progress/live.ts';
import { createPlainReporter } from '../../../cluster-cli/progress/plain.ts';
import {
  applyJobEvent,
  estimateRemainingMs,
  type JobProgress,
  startProgress,
} from '../../../cluster-cli/progress/state.ts';
import { sampleJob } from '../../lab/sample-job.ts';

const MIB = 1024 * 1024;
const plainPaint = (_style: string, text: string): string => text;
const options = (columns: number, hasUnicode = true) => ({
  columns,
  hasUnicode,
  paint: plainPaint,
});

function after(events: readonly JobEvent[]): JobProgress {
  return events.reduce(applyJobEvent, startProgress(7));
}
const started: JobEvent = { type: 'stage-started', atMs: 0, stage: 'image' };
const measured = (atMs: number, doneMiB: number, totalMiB: number | null = 1000): JobEvent => ({
  type: 'progress',
  atMs,
  activity: 'image',
  doneBytes: doneMiB * MIB,
  totalBytes: totalMiB === null ? null : totalMiB * MIB,
});

test('the rate follows the measurements, and the time left follows the rate', () => {
  const [activity] = after([
    started,
    measured(0, 0),
    measured(1000, 50),
    measured(2000, 100),
  ]).activities;
  assert.equal(activity?.bytesPerSecond, 50 * MIB);
  assert.equal(activity && estimateRemainingMs(activity), 18_000);
});

test('measurements in the same instant do not make a rate, but are shown', () => {
  const [activity] = after([started, measured(0, 0), measured(1, 500)]).activities;
  assert.deepEqual([activity?.bytesPerSecond, activity?.doneBytes], [null, 500 * MIB]);
});

test('a download that begins again begins its rate again', () => {
  const [activity] = after([
    started,
    measured(0, 0),
    measured(1000, 500),
    measured(2000, 10),
  ]).activities;
  assert.equal(activity?.bytesPerSecond, null);
});

test('a stage stays until its own end, other work until it is complete', () => {
  assert.equal(after([started, measured(0, 1000)]).activities.length, 1);
  const other: JobEvent = { ...measured(0, 1), activity: 'building the appliance' } as JobEvent;
  const done: JobEvent = { ...measured(9, 1000), activity: 'building the appliance' } as JobEvent;
  assert.equal(after([other]).activities.length, 1);
  assert.equal(after([other, done]).activities.length, 0);
  const ended: JobEvent = {
    type: 'stage-finished',
    atMs: 9,
    stage: 'image',
    durationMs: 9,
    summary: '',
  };
  assert.equal(after([started, ended]).activities.length, 0);
});

test('at 80 columns a line has name, bar, share, bytes, rate and time left', () => {
  const progress = after([started, measured(0, 0), measured(1000, 50), measured(9000, 450)]);
  assert.deepEqual(
    renderLive(progress, 0, options(80)),
    ['⠋ image              ████████░░░░░░░░░░  45 % 450 MiB/1.0 GiB 50 MiB/s ETA 0:11'].map(
      (line) => line.replace('1.0 GiB', '0.9 GiB').replace('0.9 GiB', '1.0 GiB'),
    ),
  );
});

test('no line is wider than the terminal, however narrow it is', () => {
  const progress = after([
    started,
    measured(0, 0),
    measured(1000, 50),
    { type: 'output', atMs: 2, stage: 'image', line: `a very long line ${'漢字'.repeat(40)}` },
    { type: 'status', atMs: 3, status: 'waiting', waitsFor: [1, 2, 3] },
  ]);
  for (let columns = 2; columns <= 200; columns += 1) {
    for (const hasUnicode of [true, false]) {
      for (const line of renderLive(progress, 500, options(columns, hasUnicode))) {
        const width = [...line].reduce((sum, each) => sum + (/[漢字]/.test(each) ? 2 : 1), 0);
        assert.equal(width < columns, true, `${columns}: ${line}`);
      }
    }
  }
});

test('without UTF-8 nothing but ASCII is drawn', () => {
  const progress = after([started, measured(0, 0), measured(1000, 400)]);
  const finished: JobEvent & { type: 'stage-finished' } = {
    type: 'stage-finished',
    atMs: 1,
    stage: 'image',
    durationMs: 61_000,
    summary: 'x'.repeat(100),
  };
  const lines = [
    ...renderLive(progress, 0, options(80, false)),
    renderFinished(finished, options(80, false)),
  ];
  assert.match(lines.join('\n'), /^[\n -~]*$/);
});

test('a bar is coloured as far as it is full, and colours take no room', () => {
  const progress = after([started, measured(0, 0), measured(1000, 50), measured(9000, 450)]);
  const [plain = ''] = renderLive(progress, 0, options(80));
  const [line = ''] = renderLive(progress, 0, {
    ...options(80),
    paint: (style, text) => `<${style}>${text}</>`,
  });
  assert.match(line, /^<cyan>⠋<\/> image +<cyan>█{8}<\/>░{10} {2}45 %/);
  assert.equal(line.replaceAll(/<[^>]*>/g, ''), plain);
});

test('a long message is broken between words, a word never', () => {
  const log = (message: string, level: 'info' | 'warn') =>
    renderLog({ type: 'log', atMs: 1, level, message }, options(24));
  assert.deepEqual(log('QEMU: -accel kvm: no such device here', 'info'), [
    'QEMU: -accel kvm: no',
    '  such device here',
  ]);
  assert.deepEqual(log(`see ${'x'.repeat(30)} now`, 'warn'), [
    'warning: see',
    `  ${'x'.repeat(30)}`,
    '  now',
  ]);
});

test('a stage that is over leaves its time and its summary', () => {
  const event = {
    type: 'stage-finished',
    atMs: 1,
    stage: 'boot-appliance',
    durationMs: 61_400,
    summary: 'agent\u001b[31m up',
  } as const;
  assert.equal(renderFinished(event, options(80)), '✔ boot-appliance      1 min 01 s  agent up');
});

test('what scripts print cannot move the cursor', () => {
  const progress = after([
    started,
    { type: 'output', atMs: 1, stage: 'image', line: 'a\u001b[2J\rb\u0007' },
  ]);
  assert.deepEqual(renderLive(progress, 0, options(80)).slice(1), ['  a b?']);
});

test('text is cut to columns, counting wide characters twice', () => {
  assert.equal(truncate('abcdef', 4, true), 'abc…');
  assert.equal(truncate('漢字漢字', 5, true), '漢字…');
  assert.equal(truncate('abc', 3, true), 'abc');
});

test('plain lines tell begin and end of stages, and progress at most every five seconds', () => {
  const report = createPlainReporter();
  let progress = startProgress(7);
  const events: JobEvent[] = [started];
  for (let second = 0; second <= 12; second += 1) events.push(measured(second * 1000, second * 10));
  events.push({
    type: 'stage-finished',
    atMs: 13_000,
    stage: 'image',
    durationMs: 13_000,
    summary: '130 MiB',
  });
  const lines = events.flatMap((event) => {
    progress = applyJobEvent(progress, event);
    return report(event, progress);
  });
  assert.deepEqual(lines, [
    'image: started',
    'image: 5 %, 50 MiB of 1.0 GiB, 10 MiB/s, 1:35 left',
    'image: 10 %, 100 MiB of 1.0 GiB, 10 MiB/s, 1:30 left',
    'image: done in 13.0 s: 130 MiB',
  ]);
});

test('a job that waits says for which one, once', () => {
  const report = createPlainReporter();
  const waiting: JobEvent = { type: 'status', atMs: 0, status: 'waiting', waitsFor: [3] };
  const progress = after([waiting]);
  assert.deepEqual(
    [report(waiting, progress), report(waiting, progress)],
    [['job 7 waits for job 3'], []],
  );
});

test('the end of a job clears what was going on', () => {
  const job = sampleJob({ status: 'success' });
  const progress = after([started, { type: 'end', atMs: 9, job }]);
  assert.deepEqual([progress.activities, progress.status, progress.job], [[], 'success', job]);
});
