import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { findTestFiles, groupOf, isPure } from './groups.ts';

test("a file's name says what it needs", () => {
  assert.deepEqual(
    ['.', '.int.', '.slow.', '.vm.', '.long.', '.alone.'].map((word) =>
      groupOf(`a/b${word}test.ts`),
    ),
    ['fast', 'fast', 'slow', 'vm', 'long', 'alone'],
  );
});

test('what needs nothing is known by its name, too', () => {
  assert.deepEqual(
    ['.', '.int.', '.vm.', '.long.', '.alone.'].map((word) => isPure(`a/b-c${word}test.ts`)),
    [true, false, false, false, false],
  );
});

test('every group of this checkout has files, and none is in two of them', () => {
  const { fast, slow, vm, long, alone } = findTestFiles(join(import.meta.dirname, '../..'));
  assert.ok(fast.includes('test/runner/groups.test.ts'));
  assert.ok(slow.length > 0 && vm.length > 0 && long.length > 0 && alone.length > 0);
  const all = [...fast, ...slow, ...vm, ...long, ...alone];
  assert.equal(new Set(all).size, all.length);
});

test('the table of test/README.md has each long test, and faster tests that exist', () => {
  const project = join(import.meta.dirname, '../..');
  const [, table = ''] = readFileSync(join(project, 'test/README.md'), 'utf8').split(
    '## Long tests',
  );
  const rows = [...table.matchAll(/^\| `(.*?)` \|.*\| `(.*?)` \|$/gm)].map(
    ([, file = '', faster = '']) => ({ file: join('test', file), faster: join('test', faster) }),
  );
  const { long, alone } = findTestFiles(project);
  assert.deepEqual(rows.map(({ file }) => file).toSorted(), [...long, ...alone].toSorted());
  for (const { faster } of rows)
    assert.ok(globSync([faster, `${faster}.test.ts`], { cwd: project }).length > 0, faster);
});
