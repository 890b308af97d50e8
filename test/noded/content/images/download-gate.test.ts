import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DownloadGate } from '../../../../noded/content/images/download-gate.ts';

const { signal } = new AbortController();
const url = (host: string): URL => new URL(`http://${host}/image`);

test('four downloads per server and sixteen in all run at once, and an ended download starts the next', async () => {
  const gate = new DownloadGate();
  const running: string[] = [];
  const ends: (() => void)[] = [];
  const waits: string[] = [];
  const start = (host: string): Promise<void> =>
    gate.run(
      url(host),
      signal,
      () => waits.push(host),
      async () => {
        running.push(host);
        await new Promise<void>((resolve) => ends.push(resolve));
      },
    );
  const all = ['slow', 'slow', 'slow', 'slow', 'slow', 'a', 'b', 'c', 'd', 'e', 'f', 'g']
    .concat(['h', 'i', 'j', 'k', 'l', 'm'])
    .map(start);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(running.filter((host) => host === 'slow').length, 4);
  assert.equal(running.length, 16);
  assert.deepEqual(waits, ['slow', 'm']);
  ends[0]?.();
  await all[0];
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(running.length, 17);
  while (running.length < 18 || ends.length > 0) {
    for (const end of ends.splice(0)) end();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(all);
});

test('a canceled waiting download fails with the reason and does not start', async () => {
  const gate = new DownloadGate();
  const hold = Promise.withResolvers<void>();
  const busy = [1, 2, 3, 4].map(() =>
    gate.run(
      url('a'),
      signal,
      () => undefined,
      () => hold.promise,
    ),
  );
  const leaving = new AbortController();
  const reason = new Error('enough');
  const waiting = gate.run(
    url('a'),
    leaving.signal,
    () => undefined,
    () => assert.fail('it ran'),
  );
  leaving.abort(reason);
  await assert.rejects(waiting, reason);
  hold.resolve();
  await Promise.all(busy);
});
