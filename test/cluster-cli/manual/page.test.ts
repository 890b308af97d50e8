import assert from 'node:assert/strict';
import { test } from 'node:test';
import { heading, nest, paragraph, wrap } from '../../../cluster-cli/manual/page.ts';
import { asSentence } from '../../../cluster-cli/manual/sentence.ts';

test('a line ends before the word that would make it too long', () => {
  assert.deepEqual(wrap('one two three', 7), ['one two', 'three']);
  assert.deepEqual(wrap('a-very-long-word x', 4), ['a-very-long-word', 'x']);
  assert.deepEqual(wrap('', 10), []);
});

test('a code span and its punctuation stay on one line', () => {
  assert.deepEqual(wrap('see `gnt-os list`, then', 10), ['see', '`gnt-os list`,', 'then']);
});

test('nested headings are one level deeper', () => {
  assert.deepEqual(nest([heading('A'), paragraph('b'), heading('C', 2)]), [
    heading('A', 2),
    paragraph('b'),
    heading('C', 3),
  ]);
});

test('a label becomes a sentence, and a first word that is a name keeps its case', () => {
  assert.equal(asSentence('print JSON'), 'Print JSON.');
  assert.equal(asSentence('is done.'), 'Is done.');
  assert.equal(asSentence('gnt-noded runs'), 'gnt-noded runs.');
  assert.equal(asSentence(''), '');
});
