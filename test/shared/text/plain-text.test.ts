import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainText } from '#shared/text/plain-text.ts';

test('nothing steers a terminal or turns the text behind it round; lines, tabs and words stay', () => {
  const isolates = '\u2066\u2067\u2068\u2069';
  const embeddings = '\u202a\u202b\u202c\u202d\u202e';
  const marks = '\u061c\u200e\u200f';
  const ends = '\u2028\u2029\u0085\r\v\f';
  for (const character of `${isolates}${embeddings}${marks}${ends}\u001b\u009b\u007f\0`)
    assert.equal(plainText(`a${character}b`), 'a?b', `U+${character.charCodeAt(0).toString(16)}`);
  const words = 'eins\tzwei\nשלום مرحبا 日本 é 🙂';
  assert.equal(plainText(words), words);
});
