import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import {
  endProcess,
  isAlive,
  parseProcessStat,
  readProcessIdentity,
  signalProcess,
} from '../../../noded/host/process-identity.ts';

const rest = '1 2 3 4 -1 5 6 7 8 9 10 11 12 13 20 0 1 0 987654 14 15';

test('the status of a process whose name contains parentheses is parsed', () => {
  assert.deepEqual(parseProcessStat(`123 (a) Z 9 (b) S ${rest}`), {
    pid: 123,
    startTicks: '987654',
  });
});

test('a zombie and a malformed status line are no process', () => {
  assert.equal(parseProcessStat(`123 (qemu) Z ${rest}`), undefined);
  for (const text of ['', '123', '123 (x) S 1 2', 'x (y) S 1']) {
    assert.equal(parseProcessStat(text), undefined);
  }
});

test('an ended process is not alive, and a process with another start time is not signaled', async () => {
  const child = spawn('sleep', ['60']);
  const identity = readProcessIdentity(child.pid ?? 0);
  assert.ok(identity && isAlive(identity));
  assert.equal(isAlive({ ...identity, startTicks: '1' }), false);
  signalProcess({ ...identity, startTicks: '1' }, 'SIGKILL');
  assert.ok(isAlive(identity));
  const exit = once(child, 'exit');
  signalProcess(identity, 'SIGKILL');
  await exit;
  assert.equal(isAlive(identity), false);
  signalProcess(identity, 'SIGKILL');
});

test('a process gets SIGTERM, and is killed when it ignores SIGTERM or the ask time is 0', async () => {
  const limits = { askMs: 10_000, killMs: 10_000 };
  for (const [trap, asked, expected] of [
    ['trap "exit 7" TERM', limits, 7],
    ['trap "" TERM', { ...limits, askMs: 50 }, 'SIGKILL'],
    ['trap "exit 7" TERM', { ...limits, askMs: 0 }, 'SIGKILL'],
  ] as const) {
    const child = spawn('sh', ['-c', `${trap}; echo; while :; do sleep 0.01; done`]);
    const exit = once(child, 'exit');
    await once(child.stdout, 'data');
    const identity = readProcessIdentity(child.pid ?? 0);
    assert.ok(identity);
    assert.equal(await endProcess(identity, asked), true);
    const [status, signal] = (await exit) as [number | null, NodeJS.Signals | null];
    assert.equal(status ?? signal, expected);
  }
});
