import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseFilter } from '../../../../noded/api/rapi/query-filter.ts';

const items = [
  { name: 'a', ram: 128, tags: ['blue'], up: true },
  { name: 'b', ram: null, tags: [], up: false },
];
const names = new Set(['name', 'ram', 'tags', 'up']);

function selected(filter: unknown): string {
  const matches = parseFilter(filter, names);
  return items
    .filter(matches)
    .map(({ name }) => name)
    .join();
}

test('operators select as in Ganeti', () => {
  const cases: readonly (readonly [unknown, string])[] = [
    [null, 'a,b'],
    [['=', 'name', 'a'], 'a'],
    [['!=', 'name', 'a'], 'b'],
    [['?', 'up'], 'a'],
    [['?', 'tags'], 'a'],
    [['!', ['?', 'up']], 'b'],
    [['=[]', 'tags', 'blue'], 'a'],
    [['<', 'ram', 256], 'a'],
    [['>=', 'name', 'b'], 'b'],
    [['|', ['=', 'name', 'a'], ['=', 'name', 'b']], 'a,b'],
    [['&', ['=', 'name', 'a'], ['?', 'up']], 'a'],
  ];
  for (const [filter, expected] of cases) assert.equal(selected(filter), expected);
});

test('unknown fields, regular expressions and towers of brackets are refused', () => {
  const tower = Array.from({ length: 50 }).reduce<unknown>((inner) => ['!', inner], ['?', 'up']);
  for (const filter of [
    ...[['=', 'constructor', 1], ['=~', 'name', '(a+)+$'], 'name', [], ['!'], {}],
    tower,
  ]) {
    assert.throws(() => selected(filter), { name: 'RapiFailure' });
  }
});
