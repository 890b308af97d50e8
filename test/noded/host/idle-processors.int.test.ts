import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { test } from 'node:test';
import { findIdleProcessors, idleOf } from '../../../noded/host/idle-processors.ts';

test('the number of idle processors excludes those of other runnable tasks', () => {
  const idle = (running: number): number => idleOf(`0.20 0.18 0.12 ${running}/80 11206\n`, 4);
  assert.deepEqual([1, 2, 4, 5, 9].map(idle), [4, 3, 1, 0, 0]);
  assert.equal(idleOf('of another system', 4), 0);
});

test('a fully loaded host has no idle processor', async () => {
  const count = availableParallelism() + 1;
  const busy = Array.from({ length: count }, () =>
    spawn('sh', ['-c', 'echo; while :; do :; done']),
  );
  try {
    await Promise.all(busy.map((child) => once(child.stdout, 'data')));
    assert.equal(await findIdleProcessors(1), 0);
  } finally {
    for (const child of busy) child.kill('SIGKILL');
  }
});
