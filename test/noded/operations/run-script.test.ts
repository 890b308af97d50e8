import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findScript } from '../../../noded/operations/run-script.ts';

const find = (wanted: string, ...scripts: readonly string[]): string =>
  findScript(
    { name: 'web1' },
    wanted,
    scripts.map((name) => ({ name })),
  ).name;

test('a script is found by its name, with or without its number', () => {
  assert.equal(find('backup', '01-deploy', '02-backup'), '02-backup');
  assert.equal(find('02-backup', '01-backup', '02-backup'), '02-backup');
});

test('a name that means several scripts is refused with their numbers', () => {
  assert.throws(() => find('backup', '01-backup', '02-deploy', '03-backup'), {
    code: 'NOT_FOUND',
    message: "the operational list of 'web1' has several scripts 'backup'",
    hint: 'Name one by its number: 01-backup, 03-backup',
  });
});
