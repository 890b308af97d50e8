import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Schemas } from '../../../client/api-client.ts';
import { addJobEvent, NO_PROGRESS, rateOf } from '../../../web/live/job-progress.ts';

type JobEvent = Schemas['JobEvent'];

function progressOf(...events: readonly JobEvent[]) {
  return events.reduce(addJobEvent, NO_PROGRESS);
}

function transferred(atMs: number, doneBytes: number, activity = 'image'): JobEvent {
  return { type: 'progress', atMs, activity, doneBytes, totalBytes: 1000 };
}

test('a stage is open from its start until its end', () => {
  const begun: JobEvent = { type: 'stage-started', atMs: 10, stage: 'fetch-image' };
  const running = progressOf(begun);
  assert.deepEqual(running.stages, [
    { stage: 'fetch-image', startedAtMs: 10, durationMs: null, summary: '' },
  ]);
  const { stages } = addJobEvent(running, {
    type: 'stage-finished',
    ...{ atMs: 40, stage: 'fetch-image', durationMs: 30, summary: 'from the cache' },
  });
  assert.deepEqual(stages, [
    { stage: 'fetch-image', startedAtMs: 10, durationMs: 30, summary: 'from the cache' },
  ]);
});

test('rate and remaining time follow from the transfer since its first report', () => {
  const { transfer } = progressOf(
    transferred(0, 100),
    transferred(1000, 300),
    transferred(2000, 500),
  );
  assert.ok(transfer);
  assert.deepEqual(rateOf(transfer), { bytesPerS: 200, remainingS: 2.5 });
});

test('another transfer, or the same one from its start, has a rate of its own', () => {
  for (const next of [transferred(3000, 10), transferred(3000, 900, 'overlay')]) {
    const { transfer } = progressOf(transferred(0, 0), transferred(2000, 500), next);
    assert.ok(transfer);
    assert.deepEqual(rateOf(transfer), { bytesPerS: null, remainingS: null });
  }
});

test('the log keeps its last 5,000 lines', () => {
  const lines = Array.from({ length: 6000 }, (_, index) => String(index));
  const progress = progressOf({
    type: 'script-output',
    atMs: 0,
    ...{ text: lines.join('\n') },
  } as JobEvent);
  assert.equal(progress.lines.length, 5000);
  assert.equal(progress.lines.at(-1), '5999');
});
