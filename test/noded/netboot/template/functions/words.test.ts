import assert from 'node:assert/strict';
import { test } from 'node:test';
import { abbreviateBoth, wrapText } from '../../../../../noded/netboot/template/functions/words.ts';

for (const [text, width, cutsWords, expected] of [
  ['one two three', 7, false, 'one two|three'],
  ['one two three', 6, false, 'one|two|three'],
  ['  one two', 4, false, 'one|two'],
  ['one', 3, false, 'one'],
  // A long word gets a line of its own, and ends the text if nothing follows it.
  ['a abcdefgh b', 3, false, 'a|abcdefgh|b'],
  ['a abcdefgh', 3, false, 'a|abcdefgh'],
  ['a abcdefgh b', 3, true, 'a|abc|def|gh|b'],
  ['abcdef', 0, true, 'a|b|c|d|e|f'],
  ['', 3, true, ''],
] as const) {
  test(`'${text}' wrapped at ${width}${cutsWords ? ', with words cut,' : ''} is ${expected}`, () => {
    assert.equal(wrapText(text, width, '|', cutsWords), expected);
  });
}

for (const [left, right, expected] of [
  [0, 8, 'abcde...'],
  [0, 26, 'abcdefghijklmnopqrstuvwxyz'],
  [0, 3, 'abcdefghijklmnopqrstuvwxyz'],
  [5, 6, 'abcdefghijklmnopqrstuvwxyz'],
  [5, 10, '...fghi...'],
  [4, 10, 'abcdefg...'],
  [20, 10, '...tuvwxyz'],
  [99, 10, '...tuvwxyz'],
] as const) {
  test(`the alphabet abbreviated from ${left} to ${right} bytes is ${expected}`, () => {
    assert.equal(abbreviateBoth(left, right, 'abcdefghijklmnopqrstuvwxyz'), expected);
  });
}
