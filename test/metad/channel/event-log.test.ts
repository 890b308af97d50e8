import assert from 'node:assert/strict';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import { test } from 'node:test';
import { metadEvent } from '#shared/contract/metad-control.ts';
import { EventLog } from '../../../metad/channel/event-log.ts';

const A = '6aa7b544-1f3d-49e9-b2b7-73836039b5cf';
const B = 'c5fe7f7b-3bf8-491f-9c11-e6a91766c40f';
const written = { type: 'written', bytes: 1 } as const;

test('events of all instances are returned in order, after a given sequence number', () => {
  const log = new EventLog(100);
  log.append(A, written);
  log.append(B, written);
  log.append(A, written);
  assert.deepEqual(
    log.recordsAfter(0).map(({ sequence }) => sequence),
    [101, 102, 103],
  );
  assert.deepEqual(
    log.recordsAfter(101).map(({ sequence }) => sequence),
    [102, 103],
  );
});

test('every line is an event of the contract', () => {
  const log = new EventLog(0, { maxEvents: 2, maxBytes: 10_000, maxBytesOfAll: 1e9 });
  for (let count = 0; count < 5; count++) log.append(A, written);
  for (const { line, sequence } of log.recordsAfter(0)) {
    assert.equal(metadEvent.parse(JSON.parse(line)).sequence, sequence);
  }
});

test('dropped events are reported as one gap before the kept events, and only to readers that missed them', () => {
  const log = new EventLog(0, { maxEvents: 2, maxBytes: 10_000, maxBytesOfAll: 1e9 });
  for (let count = 0; count < 5; count++) log.append(A, written);
  const types = (after: number): unknown[] =>
    log.recordsAfter(after).map(({ line }) => metadEvent.parse(JSON.parse(line)).event);
  assert.deepEqual(types(0), [{ type: 'gap', lost: 3 }, written, written]);
  assert.deepEqual(types(3), [written, written]);
});

test('an instance that floods the log displaces no event of another instance', () => {
  const log = new EventLog(0, { maxEvents: 2, maxBytes: 10_000, maxBytesOfAll: 1e9 });
  log.append(B, written);
  for (let count = 0; count < 50; count++) log.append(A, written);
  assert.ok(log.recordsAfter(0).some(({ line }) => line.includes(B)));
});

test('the kept bytes of an instance are bounded', () => {
  const log = new EventLog(0, { maxEvents: 1000, maxBytes: 5000, maxBytesOfAll: 1e9 });
  const event = { type: 'ready', source: 'guest', text: 'x'.repeat(1000) } as const;
  for (let count = 0; count < 50; count++) log.append(A, event);
  assert.ok(log.recordsAfter(0).length <= 6);
});

test('events of a removed instance are removed', () => {
  const log = new EventLog(0);
  log.append(A, written);
  log.forget(A);
  assert.deepEqual(log.recordsAfter(0), []);
});

test('at the limit for all instances, the instance with the most events loses its oldest, and others lose none', () => {
  const log = new EventLog(0, { maxEvents: 10_000, maxBytes: 1e9, maxBytesOfAll: 40_000 });
  const instances = Array.from({ length: 4 }, (_, index) => `instance-${index}`);
  for (const instance of instances.slice(1)) log.append(instance, { type: 'written', bytes: 1 });
  for (let count = 0; count < 5000; count++)
    log.append(instances[0] ?? '', { type: 'written', bytes: count });
  const kept = log.recordsAfter(0).map(({ line }) => JSON.parse(line) as MetadEvent);
  const length = log.recordsAfter(0).reduce((sum, { line }) => sum + line.length, 0);
  assert.ok(length <= 40_000, `${length} bytes`);
  for (const instance of instances.slice(1)) {
    assert.deepEqual(
      kept.filter((event) => event.instance === instance).map(({ event }) => event.type),
      ['written'],
    );
  }
  const own = kept.filter(({ instance }) => instance === instances[0]);
  assert.equal(own[0]?.event.type, 'gap');
  assert.deepEqual(own.at(-1)?.event, { type: 'written', bytes: 4999 });
  log.forget(instances[0] ?? '');
  assert.equal(log.recordsAfter(0).length, 3);
});

test('an acknowledgement waits for each reader, and skips a late reader until it catches up', async () => {
  const log = new EventLog(0);
  const [fast, slow] = [log.subscribe(() => undefined), log.subscribe(() => undefined)];
  const acknowledge = async (limitMs: number): Promise<'handed over' | 'late'> => {
    log.append(A, written);
    const waiting = log.untilHandedOver(limitMs).then(() => 'handed over' as const);
    fast.handedOver(log.lastSequence);
    return await Promise.race([waiting, turns('late' as const)]);
  };
  assert.equal(await acknowledge(60_000), 'late', 'the second reader has it not');
  slow.handedOver(log.lastSequence);
  assert.equal(await turns(log.untilHandedOver(60_000).then(() => 'has it')), 'has it');
  // Let the limit pass once.
  log.append(A, written);
  fast.handedOver(log.lastSequence);
  await log.untilHandedOver(1);
  for (let count = 0; count < 3; count += 1)
    assert.equal(await acknowledge(60_000), 'handed over', 'nobody waits for it again');
  slow.handedOver(log.lastSequence);
  assert.equal(await acknowledge(60_000), 'late', 'it has caught up, and counts again');
  slow.end();
});

/** Returns the value a few turns of the loop later. */
async function turns<T>(value: T | Promise<T>): Promise<T> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  return value;
}

test('waiting reports resume up to the delivered event, and all of them resume when the last reader ends', async () => {
  const log = new EventLog(0);
  const reading = log.subscribe(() => undefined);
  const woken: number[] = [];
  const all = Array.from({ length: 5 }, async (_, index) => {
    log.append(A, written);
    await log.untilHandedOver(60_000);
    woken.push(index);
  });
  reading.handedOver(2);
  await turns(null);
  assert.deepEqual(woken, [0, 1]);
  reading.end();
  await Promise.all(all);
  assert.deepEqual(woken, [0, 1, 2, 3, 4]);
});
