import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { type Duplex, duplexPair } from 'node:stream';
import { joinStreams } from '#shared/stream/join-streams.ts';
import { SendRate } from '#shared/stream/send-rate.ts';

/** Measures some work, in milliseconds. */
async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now();
  await work();
  return performance.now() - startedAtMs;
}

test('several senders share a rate, after a burst of a tenth of a second', async () => {
  const rate = new SendRate(1_000_000);
  await rate.take(50_000);
  const taken = Array.from({ length: 5 }, () => rate.take(50_000));
  assert.ok((await timeOf(() => Promise.all(taken))) > 150);
});

test('unused time gives no further burst', async (t) => {
  const rate = new SendRate(1_000_000);
  const later = performance.now() + 60_000;
  await rate.take(1);
  const now = t.mock.method(performance, 'now', () => later);
  const taken = rate.take(300_000);
  now.mock.restore();
  assert.ok((await timeOf(() => taken)) > 150);
});

test('a lifted rate limits nothing', async () => {
  const rate = new SendRate(1);
  rate.lift();
  await rate.take(1_000_000);
});

test('an aborted signal ends the wait', async () => {
  const rate = new SendRate(1);
  await rate.take(1_000_000, AbortSignal.timeout(20));
});

test('joined streams are slowed in one direction, and their bytes arrive whole and end', async () => {
  const [near, left] = duplexPair();
  const [right, far] = duplexPair();
  const rate = new SendRate(1_000_000);
  joinStreams(left, right, rate.slow());
  const bytes = Buffer.alloc(300_000, 'x');
  near.end(bytes);
  far.end(bytes);
  const [back, there] = [receive(near), receive(far)];
  const order: string[] = [];
  void back.then(() => order.push('back'));
  const tookMs = await timeOf(() => there.then(() => order.push('there')));
  assert.ok(tookMs > 150, `${tookMs} ms`);
  assert.deepEqual(order, ['back', 'there']);
  assert.deepEqual([await back, await there], [bytes, bytes]);
});

/** Reads to the end without closing the other direction. */
async function receive(stream: Duplex): Promise<Buffer> {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(stream, 'end');
  return Buffer.concat(chunks);
}
