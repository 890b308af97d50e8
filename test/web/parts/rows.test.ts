import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sortRows, targetOf } from '../../../web/parts/rows.ts';

const columns = [
  { key: 'size', compare: (a: number[], b: number[]) => (a[0] ?? 0) - (b[0] ?? 0) },
  { key: 'note' },
];

test('rows are sorted by a column, both ways, and equal rows keep their order', () => {
  const rows = [[2], [1, 1], [3], [1, 2]];
  assert.deepEqual(sortRows(rows, columns, 'size'), [[1, 1], [1, 2], [2], [3]]);
  assert.deepEqual(sortRows(rows, columns, '-size'), [[3], [2], [1, 1], [1, 2]]);
});

test('an order by an unknown column leaves the rows as they are', () => {
  const rows = [[2], [1]];
  for (const order of ['note', 'other', '-', ''])
    assert.equal(sortRows(rows, columns, order), rows);
});

test('keys stay within the rows', () => {
  assert.equal(targetOf('ArrowDown', 9, 10), 9);
  assert.equal(targetOf('ArrowDown', 3, 10), 4);
  assert.equal(targetOf('ArrowUp', 0, 10), 0);
  assert.equal(targetOf('End', 3, 10), 9);
  assert.equal(targetOf('Home', 3, 10), 0);
  assert.equal(targetOf('a', 3, 10), undefined);
  assert.equal(targetOf('ArrowDown', NaN, 10), undefined);
});
