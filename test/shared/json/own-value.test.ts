import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownValue, setOwn } from '#shared/json/own-value.ts';

test('a table has no value under the names that every object inherits', () => {
  for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty'])
    assert.equal(ownValue<unknown>({ other: 1 }, name), undefined, name);
  assert.equal(ownValue({ constructor: 'a value' }, 'constructor'), 'a value');
});

test('a value that is put under __proto__ is kept as any other', () => {
  const table: Record<string, string> = {};
  setOwn(table, '__proto__', 'a value');
  assert.equal(ownValue(table, '__proto__'), 'a value');
  assert.equal(JSON.stringify(table), '{"__proto__":"a value"}');
});
