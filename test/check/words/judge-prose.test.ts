import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  folderOf,
  judgePlaces,
  judgeTotal,
  listHits,
  tallyProse,
  userStrings,
} from './judge-prose.ts';

const CONTENTS = new Map([
  ['README.md', 'What is read.\n'],
  ['noded/netboot/plan/a.ts', "// nobody, somebody\nfail('a disk of whoever');\n"],
  ['noded/b.ts', '// A reason.\n'],
  ['test/noded/b.test.ts', "test('nobody has a disk now');\n"],
  ['fixtures/a.md', 'nobody\n'],
]);

test('documents count by file, strings and comments by folder, and fixtures not at all', () => {
  const { documents, strings, comments } = tallyProse(CONTENTS);
  assert.deepEqual([...documents.keys()], ['README.md']);
  assert.deepEqual([...strings.keys()], ['noded/netboot', 'test/noded']);
  assert.deepEqual([...comments.keys()], ['noded/netboot', 'noded']);
  assert.deepEqual([...userStrings(strings).keys()], ['noded/netboot']);
});

test('a place above the limit is a finding', () => {
  const { comments } = tallyProse(CONTENTS);
  const [finding = '', ...others] = judgePlaces('comments', comments);
  assert.match(finding, /^noded\/netboot: comments have 2 /);
  assert.deepEqual(others, []);
});

test('hits of a place are listed with file and line', () => {
  assert.deepEqual(listHits(CONTENTS, 'comments', 'noded/netboot'), [
    'noded/netboot/plan/a.ts:1 [nobody] nobody, somebody',
    'noded/netboot/plan/a.ts:1 [nobody] nobody, somebody',
  ]);
  assert.equal(folderOf('noded/main.ts'), 'noded');
});

test('single hits of many places count together', () => {
  const places = new Map(['a', 'b'].map((place) => [place, { words: 100, hits: 1 }]));
  assert.deepEqual(judgePlaces('documents', places), []);
  assert.match(judgeTotal([places])[0] ?? '', /2 banned patterns in 200 words/);
  assert.deepEqual(judgeTotal([new Map([['a', { words: 1000, hits: 0 }]])]), []);
});
