import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import { leastGrowth } from '../../lab/least-growth.ts';
import type { JobEvent } from '#shared/contract/job.ts';
import { sampleJob } from '../../lab/sample-job.ts';
import { JobStream } from '../../../noded/jobs/job-stream.ts';
import { threadMs } from '../../lab/thread-time.ts';

const job = sampleJob({ status: 'success' });
const end: JobEvent = { type: 'end', atMs: 9, job };
const log = (message: string): JobEvent => ({ type: 'log', atMs: 1, message, level: 'info' });
const output = (line: string): JobEvent => ({ type: 'output', atMs: 1, stage: 'os-scripts', line });
const progress = (activity: string, doneBytes: number): JobEvent => ({
  type: 'progress',
  atMs: 1,
  activity,
  doneBytes,
  totalBytes: null,
});

async function collect(stream: JobStream, signal = new AbortController().signal) {
  const events: JobEvent[] = [];
  for await (const event of stream.watch(signal)) events.push(event);
  return events;
}

test('tells a late watcher everything from the beginning, and ends after the end', async () => {
  const stream = new JobStream();
  stream.push(log('one'));
  stream.push(log('two'));
  stream.push(end);
  assert.deepEqual(await collect(stream), [log('one'), log('two'), end]);
});

test('hands events to every watcher as they happen', async () => {
  const stream = new JobStream();
  const first = collect(stream);
  const second = collect(stream);
  await turn();
  stream.push(log('one'));
  await turn();
  stream.push(end);
  assert.deepEqual(await first, [log('one'), end]);
  assert.deepEqual(await second, [log('one'), end]);
});

test('remembers only the newest progress of each activity, in the order of the events', async () => {
  const stream = new JobStream();
  stream.push(progress('image', 1));
  stream.push(progress('fetch-image', 5));
  stream.push(log('between'));
  stream.push(progress('image', 2));
  stream.push(end);
  assert.deepEqual(await collect(stream), [
    progress('fetch-image', 5),
    log('between'),
    progress('image', 2),
    end,
  ]);
});

test('takes nothing after the end', async () => {
  const stream = new JobStream();
  stream.push(end);
  stream.push(log('late'));
  assert.deepEqual(await collect(stream), [end]);
});

test('a watcher that is aborted while it waits ends quietly', async () => {
  const stream = new JobStream();
  const controller = new AbortController();
  const watching = collect(stream, controller.signal);
  stream.push(log('one'));
  await turn();
  controller.abort();
  assert.deepEqual(await watching, [log('one')]);
});

test('keeps the stages of a job whose output has no end', async () => {
  const stream = new JobStream();
  const started: JobEvent = { type: 'stage-started', atMs: 0, stage: 'os-scripts' };
  stream.push(started);
  for (let index = 0; index < 20_000; index += 1) stream.push(output(String(index)));
  stream.push(end);
  const events = await collect(stream);
  assert.ok(events.length <= 6_002, `${events.length} events are kept`);
  assert.deepEqual(events[0], started);
  assert.deepEqual(events.at(-2), output('19999'));
});

test('a watcher that does not read holds no more than the newest events, and still gets the end', async () => {
  const stream = new JobStream();
  const watcher = stream.watch(new AbortController().signal);
  const first = watcher.next();
  stream.push(log('first'));
  assert.deepEqual((await first).value, log('first'));
  for (let index = 0; index < 50_000; index += 1) stream.push(output(String(index)));
  stream.push(end);
  const rest: JobEvent[] = [];
  for await (const event of watcher) rest.push(event);
  assert.ok(rest.length <= 6_002, `${rest.length} events were held for it`);
  assert.deepEqual(rest.at(-2), output('49999'));
  assert.deepEqual(rest.at(-1), end);
});

test('takes a flood of progress and output in linear time', () => {
  const flood = (events: number): number => {
    const stream = new JobStream();
    return threadMs(() => {
      for (let index = 0; index < events / 2; index += 1) {
        stream.push(output(String(index)));
        stream.push(progress('image', index));
      }
    });
  };
  const growth = leastGrowth(flood, 40_000, 800_000);
  // Twenty times as many events; both numbers exceed a stream's limit, so most are dropped.
  // Quadratic work would take 400 times as long.
  assert.ok(growth < 150, `${growth} times as long for twenty times as many events`);
});

test('its time never goes back, since watchers tell by it what they have seen', async () => {
  const stream = new JobStream();
  stream.push({ ...log('before'), atMs: 7_200_000 });
  stream.push({ ...log('after the clock was set back'), atMs: 1 });
  stream.push(end);
  const times = (await collect(stream)).map(({ atMs }) => atMs);
  assert.deepEqual(times, [7_200_000, 7_200_000, 7_200_000]);
});
