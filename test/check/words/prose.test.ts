import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countProse, findPatterns, proseOf, rateOf } from './prose.ts';

test('each banned pattern is found by its name', () => {
  assert.deepEqual(findPatterns('Removes what is old.'), ['what-clause']);
  assert.deepEqual(findPatterns('disks of nobody'), ['nobody']);
  assert.deepEqual(findPatterns('for those that whoever anew'), ['who', 'one that', 'idiom']);
});

test('a question and a named person are no hits', () => {
  assert.deepEqual(findPatterns('What is a node?'), []);
  assert.deepEqual(findPatterns('An operator who waits'), []);
  assert.deepEqual(findPatterns('The daemon who waits'), ['who']);
});

test('a document counts whole lines, without headings and quotations', () => {
  assert.deepEqual(proseOf('a.md', '# What is new'), { kind: 'document', text: '' });
  assert.equal(proseOf('a.md', 'Not "what is" here').text, 'Not  here');
});

test('code counts literals of four words or more, and comments', () => {
  assert.deepEqual(proseOf('a.ts', "  x('what is it', `no disk of that name`); // see RFC"), {
    kind: 'string',
    text: 'no disk of that name . see RFC',
  });
  assert.deepEqual(proseOf('a.ts', ' * What it does.'), { kind: 'comment', text: 'What it does.' });
  assert.deepEqual(proseOf('a.ts', 'const a = 1;'), { kind: 'comment', text: '' });
  assert.equal(proseOf('a.ts', "const url = 'http://a';").text, '');
});

test('the rate is hits per thousand words', () => {
  const count = countProse('nobody reads this');
  assert.deepEqual(count, { words: 3, hits: 1 });
  assert.equal(Math.round(rateOf(count)), 333);
  assert.equal(rateOf({ words: 0, hits: 0 }), 0);
});
