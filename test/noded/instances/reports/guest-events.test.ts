import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import { silentLogger } from '#shared/log/log.ts';
import {
  createGuestEvents,
  followGuests,
} from '../../../../noded/instances/reports/guest-events.ts';

const eventOf = (instance: string, sequence: number, text = ''): MetadEvent =>
  ({ instance, sequence, event: { kind: 'x', text } }) as unknown as MetadEvent;

test('an event reaches each listener of its guest, until that listener leaves', () => {
  const events = createGuestEvents();
  const heard: string[] = [];
  const leave = events.subscribe('a', (_, sequence) => heard.push(`first ${sequence}`));
  events.subscribe('a', (_, sequence) => heard.push(`second ${sequence}`));
  events.dispatch(eventOf('a', 1));
  events.dispatch(eventOf('b', 2));
  leave();
  events.dispatch(eventOf('a', 3));
  assert.deepEqual(heard, ['first 1', 'second 1', 'second 3']);
});

test('events before the listener come first and in order, and each one once', () => {
  const events = createGuestEvents();
  const heard: number[] = [];
  const early = events.listenEarly('a');
  events.dispatch(eventOf('a', 1));
  events.dispatch(eventOf('a', 2));
  const leave = early.handOver((_, sequence) => heard.push(sequence));
  events.dispatch(eventOf('a', 3));
  leave();
  events.dispatch(eventOf('a', 4));
  assert.deepEqual(heard, [1, 2, 3]);
  const stopped = events.listenEarly('a');
  stopped.stop();
  events.dispatch(eventOf('a', 5));
  stopped.handOver((_, sequence) => heard.push(sequence));
  assert.deepEqual(heard, [1, 2, 3]);
});

test('a guest that floods early events costs bounded memory, and its newest events are kept', () => {
  const events = createGuestEvents();
  const early = events.listenEarly('a');
  const large = 'x'.repeat(2 ** 20);
  for (let sequence = 1; sequence <= 20; sequence += 1)
    events.dispatch(eventOf('a', sequence, large));
  const heard: number[] = [];
  early.handOver((_, sequence) => heard.push(sequence));
  assert.deepEqual(heard, [18, 19, 20]);
  const many = events.listenEarly('b');
  for (let sequence = 1; sequence <= 20_000; sequence += 1) events.dispatch(eventOf('b', sequence));
  let count = 0;
  many.handOver(() => (count += 1));
  assert.ok(count > 1000 && count < 10_000, String(count));
});

test('a listener that fails ends neither the events of others nor the stream', async () => {
  const events = createGuestEvents();
  const heard: number[] = [];
  events.subscribe('a', () => assert.fail('a bug'));
  events.subscribe('b', (_, sequence) => heard.push(sequence));
  async function* stream(): AsyncGenerator<MetadEvent> {
    yield eventOf('a', 1);
    yield eventOf('b', 2);
    throw new Error('metad ended');
  }
  const errors: string[] = [];
  const logger = { ...silentLogger, error: (event: string) => void errors.push(event) };
  await followGuests(stream(), events, logger);
  assert.deepEqual(heard, [2]);
  assert.deepEqual(errors, ['event.not-taken', 'events.ended']);
});
