import assert from 'node:assert/strict';
import { test } from 'node:test';
import { machineExpected } from '#shared/contract/migration.ts';

const nature = { qemu: '10.0', board: 'pc', accelerator: 'tcg', processor: null };
const expected = { nature, startedAtMs: 1000, arguments: [], seed: null, secrets: { key: 'x' } };

test('a node that sends a guest gives no time that no clock shows', () => {
  assert.ok(machineExpected.safeParse(expected).success);
  for (const startedAtMs of [-1, 1e16, 1e300])
    assert.ok(!machineExpected.safeParse({ ...expected, startedAtMs }).success, `${startedAtMs}`);
});

test('a node that sends a guest gives secrets with the names and sizes of secrets', () => {
  const many = Object.fromEntries(
    Array.from({ length: 20 }, (_, at) => [`k${at}`, 'x'.repeat(65_000)]),
  );
  for (const secrets of [
    { '../etc': 'x' },
    { '': 'x' },
    { 'a b': 'x' },
    { k: 'x'.repeat(65_537) },
    many,
  ])
    assert.ok(!machineExpected.safeParse({ ...expected, secrets }).success);
});
