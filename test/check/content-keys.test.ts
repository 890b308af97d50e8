import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keysOfClosures, keysOfFiles } from './content-keys.ts';

const FILES = {
  'noded/main.ts': "import { run } from './run.ts';\nimport type { Job } from '#shared/job.ts';",
  'noded/run.ts': "import { readFile } from 'node:fs';\nimport './main.ts';\nexport const run = 1;",
  'noded/late.ts': "export const late = () => import('./alone.ts');",
  'noded/alone.ts': 'export const alone = 1;',
  'noded/first.ts': "export { run } from '../noded/main.ts';",
  'shared/job.ts': 'export interface Job {}',
};

/** Returns the files whose key changes with the text of `path`. */
function changedBy(keysOf: typeof keysOfFiles, path: string): readonly string[] {
  const before = keysOf(new Map(Object.entries(FILES)), 'basis');
  const after = keysOf(new Map(Object.entries({ ...FILES, [path]: 'export {};' })), 'basis');
  return [...before.keys()].filter((each) => before.get(each) !== after.get(each)).sort();
}

test('what is judged by its types has another key when anything changes that it imports', () => {
  const above = ['noded/first.ts', 'noded/main.ts', 'noded/run.ts'];
  assert.deepEqual(changedBy(keysOfClosures, 'shared/job.ts'), [...above, 'shared/job.ts']);
  assert.deepEqual(changedBy(keysOfClosures, 'noded/alone.ts'), [
    'noded/alone.ts',
    'noded/late.ts',
  ]);
  assert.deepEqual(changedBy(keysOfClosures, 'noded/first.ts'), ['noded/first.ts']);
});

test('what is judged by its text has another key for another text alone', () => {
  assert.deepEqual(changedBy(keysOfFiles, 'shared/job.ts'), ['shared/job.ts']);
});

test('with other settings, or at another path, every key is another one', () => {
  const contents = new Map(Object.entries(FILES));
  for (const keysOf of [keysOfFiles, keysOfClosures]) {
    const before = new Set(keysOf(contents, 'basis').values());
    assert.equal(before.size, contents.size);
    const moved = new Map([...contents].map(([path, text]) => [`x/${path}`, text]));
    const others = [...keysOf(contents, 'other').values(), ...keysOf(moved, 'basis').values()];
    assert.deepEqual(
      others.filter((key) => before.has(key)),
      [],
    );
  }
});

test('a file that comes where an import led to nothing changes who imports it', () => {
  const without = new Map([['a.ts', "import './b.ts';"]]);
  const withIt = new Map([...without, ['b.ts', '']]);
  const [before, after] = [without, withIt].map((each) => keysOfClosures(each, '').get('a.ts'));
  assert.notEqual(before, after);
});
