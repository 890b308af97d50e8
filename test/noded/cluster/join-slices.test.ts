import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import { joinSlices } from '../../../noded/cluster/join-slices.ts';

async function* tell(told: readonly string[], failure?: Error): AsyncGenerator<string> {
  for (const each of told) {
    await turn();
    yield each;
  }
  if (failure !== undefined) throw failure;
}

test('what several tell is told once, however slowly it is read', async () => {
  const all: string[] = [];
  for await (const each of joinSlices([tell(['a', 'b']), tell([]), tell(['c'])])) {
    await turn();
    all.push(each);
  }
  assert.deepEqual(all.sort(), ['a', 'b', 'c']);
});

test('a failure waits for a slow reader, and is no unhandled rejection meanwhile', async (t) => {
  const unhandled = t.mock.fn();
  process.on('unhandledRejection', unhandled);
  t.after(() => process.off('unhandledRejection', unhandled));
  const failure = new Error('the store is away');
  const joined = joinSlices([tell(['a'], failure)]);
  assert.deepEqual(await joined.next(), { done: false, value: 'a' });
  await turn();
  await turn();
  await assert.rejects(joined.next(), failure);
  assert.equal(unhandled.mock.callCount(), 0);
});
