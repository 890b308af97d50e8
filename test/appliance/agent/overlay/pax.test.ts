import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parsePax } from '../../../../appliance/agent/overlay/pax.ts';
import { leastGrowth } from '../../../lab/least-growth.ts';
import { threadMs } from '../../../lab/thread-time.ts';

function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  let length = rest.length;
  while (String(length).length + rest.length !== length)
    length = String(length).length + rest.length;
  return `${length}${rest}`;
}

test('the values of sparse keys are joined, and the last value of another key counts', () => {
  const text = [
    record('GNU.sparse.offset', '0'),
    record('GNU.sparse.numbytes', '5'),
    record('path', 'a'),
    record('GNU.sparse.offset', '512'),
    record('GNU.sparse.numbytes', ''),
    record('path', 'b'),
  ].join('');
  const records = [...parsePax(Buffer.from(text))].map(([key, value]) => [key, value.toString()]);
  assert.deepEqual(records, [
    ['GNU.sparse.offset', '0,512'],
    ['GNU.sparse.numbytes', '5,'],
    ['path', 'b'],
  ]);
});

test('parsing a sparse map takes linear time', () => {
  const read = (stretches: number): number => {
    const bytes = Buffer.from(record('GNU.sparse.offset', '123456789').repeat(stretches));
    return threadMs(() =>
      assert.equal(parsePax(bytes).get('GNU.sparse.offset')?.length, stretches * 10 - 1),
    );
  };
  const growth = leastGrowth(read, 2000, 32_000);
  // Sixteen times as many records take at least 256 times as long when each is appended to the
  // whole. Garbage collection makes linear work take 50 times as long on a busy machine.
  assert.ok(growth < 128, `${growth} times as long`);
});
