import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countIdleProcessors, idleOf } from '../../../noded/host/idle-processors.ts';

test('idle processors are those that no runnable task but the reader wants', () => {
  const idle = (running: number): number => idleOf(`0.20 0.18 0.12 ${running}/80 11206\n`, 4);
  assert.deepEqual([1, 2, 4, 5, 9].map(idle), [4, 3, 1, 0, 0]);
  assert.equal(idleOf('of another system', 4), 0);
});

test('this host tells it', async () => {
  const idle = await countIdleProcessors();
  assert.ok(Number.isInteger(idle) && idle >= 0, String(idle));
});
