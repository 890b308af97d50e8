import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runInGroup } from '#shared/process/run-in-group.ts';

const PATH = '/usr/bin:/bin';

/** @param room number of lines that the listener accepts */
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

test('a program is asked to end, and is killed with what it started when it does not', async () => {
  for (const [trap, graceMs, expected] of [
    ['echo asked; exit 0', 30_000, ['ready', 'asked']],
    ['echo deaf', 200, ['ready', 'deaf']],
  ] as const) {
    const abort = new AbortController();
    const seen: string[] = [];
    const running = runInGroup({
      command: '/bin/sh',
      args: ['-c', `trap '${trap}' TERM; echo ready; while :; do sleep 0.05; done`],
      environment: { PATH },
      onLine: (line, stream) => {
        if (stream === 'stdout') seen.push(line);
        if (line === 'ready') abort.abort(new Error('enough'));
      },
      ...{ signal: abort.signal, graceMs, drainMs: 1000 },
    });
    await assert.rejects(running, /enough/);
    assert.deepEqual(seen.slice(0, 2), expected);
  }
});
