import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runInGroup } from '#shared/process/run-in-group.ts';

const PATH = '/usr/bin:/bin';

/** @param room for how many lines there is an ear */
async function listen(script: string, room: number): Promise<{ seen: string[]; last: string[] }> {
  const seen: string[] = [];
  const end = await runInGroup({
    command: '/bin/sh',
    args: ['-c', script],
    environment: { PATH },
    onLine: (line) => seen.push(line),
    isFull: () => seen.length >= room,
    drainMs: 1000,
  });
  return { seen, last: [...end.lastLines] };
}

test('of what nobody has use for only the last lines are kept, and those are whole', async () => {
  const { seen, last } = await listen('seq 1 300000; printf "end äöü"', 3);
  assert.deepEqual(seen, ['1', '2', '3']);
  const numbers = Array.from({ length: 9 }, (_, index) => String(299_992 + index));
  assert.deepEqual(last, [...numbers, 'end äöü']);
});

test('lines that came one by one are the last ones all the same', async () => {
  const lines = Array.from({ length: 12 }, (_, index) => `line ${index}`);
  const slow = lines.map((line) => `echo ${line}; sleep 0.01`).join('; ');
  const { last } = await listen(slow, 0);
  assert.deepEqual(last, lines.slice(-10));
});

test('a character that lies across two reads is one where a log is full, too', async () => {
  const { last } = await listen("printf 'a\\303'; sleep 0.1; printf '\\244b\\n'", 0);
  assert.deepEqual(last, ['aäb']);
});
