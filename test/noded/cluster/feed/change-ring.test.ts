import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChangeRing } from '../../../../noded/cluster/feed/change-ring.ts';

test('a reader gets every change after its id, in order', () => {
  const ring = new ChangeRing<string>(3);
  const from = ring.lastId;
  assert.equal(ring.after(from), null);
  ring.push('a');
  ring.push('b');
  const first = ring.after(from);
  const second = ring.after(first?.id ?? '');
  assert.deepEqual([first?.change, second?.change], ['a', 'b']);
  assert.equal(second?.id, ring.lastId);
  assert.equal(ring.after(ring.lastId), null);
});

test('an id whose next change was dropped is unknown, and the one before the oldest is not', () => {
  const ring = new ChangeRing<string>(2);
  const start = ring.lastId;
  ring.push('a');
  const afterA = ring.lastId;
  for (const change of ['b', 'c']) ring.push(change);
  assert.equal(ring.after(start), undefined);
  assert.equal(ring.after(afterA)?.change, 'b');
});

test('ids of another ring, of the future and of no form are unknown', () => {
  const ring = new ChangeRing<string>(2);
  const [epoch = ''] = ring.lastId.split('-');
  ring.push('a');
  for (const id of [
    new ChangeRing<string>(2).lastId,
    `${epoch}-2`,
    `${epoch}--1`,
    epoch,
    '',
    'x-1',
  ])
    assert.equal(ring.after(id), undefined, id);
});
