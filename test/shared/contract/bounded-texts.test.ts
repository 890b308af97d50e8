import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_TABLE_BYTES, MAX_VALUE_BYTES } from '#shared/contract/bounded-texts.ts';
import { inputValues } from '#shared/contract/lifecycle.ts';
import { opcode } from '#shared/contract/opcode.ts';

const NAMES = Array.from({ length: 17 }, (_, at) => `P${at}`);
const table = (value: string): Record<string, string> =>
  Object.fromEntries(NAMES.map((name) => [name, value]));
const problemOf = (fields: object): string | undefined =>
  opcode.safeParse({ opcode: 'INSTANCE_CREATE', name: 'web1', ...fields }).error?.issues[0]
    ?.message;

test('a value is bounded by its bytes, which are what an environment is bounded by', () => {
  const wide = '€'.repeat(MAX_VALUE_BYTES / 3);
  for (const field of ['osParameters', 'osParametersPrivate', 'osParametersSecret', 'metadata']) {
    assert.equal(problemOf({ [field]: { a: wide } }), undefined);
    assert.match(problemOf({ [field]: { a: `${wide}€` } }) ?? '', /more than 65536 bytes/, field);
  }
});

test('values are bounded together, with their names, in every table', () => {
  const most = 'x'.repeat(Math.floor(MAX_TABLE_BYTES / NAMES.length) - 3);
  for (const field of ['osParameters', 'osParametersPrivate', 'osParametersSecret', 'metadata']) {
    assert.equal(problemOf({ [field]: table(most) }), undefined);
    assert.match(problemOf({ [field]: table(`${most}xxxx`) }) ?? '', /1048576 bytes/, field);
  }
  const inputs = (text: string): unknown =>
    inputValues.safeParse(Object.fromEntries(NAMES.map((name) => [name, { from: 'text', text }])))
      .error?.issues[0]?.message;
  assert.equal(inputs(most), undefined);
  assert.match(String(inputs(`${most}xxxx`)), /1048576 bytes/);
});
