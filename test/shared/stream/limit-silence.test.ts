import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { limitSilence } from '#shared/stream/limit-silence.ts';

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a reader that takes longer than the limit with a chunk gets the next one', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const chunks = limitSilence(Readable.from([Buffer.from('a'), Buffer.from('b')]), 1000);
  assert.equal(String((await chunks.next()).value), 'a');
  t.mock.timers.tick(100_000);
  await tick();
  assert.equal(String((await chunks.next()).value), 'b');
  assert.equal((await chunks.next()).done, true);
});

test('a sender that is silent for the limit ends the stream with an error that says so', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const source = new Readable({ read: () => undefined });
  source.push('a');
  const chunks = limitSilence(source, 1000);
  await chunks.next();
  const waiting = assert.rejects(chunks.next(), /no data for 1 s/);
  await tick();
  t.mock.timers.tick(1000);
  await waiting;
  assert.equal(source.destroyed, true);
});
