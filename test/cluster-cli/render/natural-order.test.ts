import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareNaturally, toNaturalText } from '../../../cluster-cli/render/natural-order.ts';

const collator = new Intl.Collator('en', { numeric: true });

/** Returns all texts of at most `length` characters. */
function textsOf(alphabet: string, length: number): readonly string[] {
  if (length === 0) return [''];
  const shorter = textsOf(alphabet, length - 1);
  return [
    ...new Set([...shorter, ...shorter.flatMap((text) => [...alphabet].map((c) => text + c))]),
  ];
}

test('texts have the order of the collator, with a key and without', () => {
  // Signs, a number with leading zeros, letters, and a text without a key.
  const texts = ['', ...textsOf('a0b1.', 4), ...textsOf('_-9Z', 3)].map(toNaturalText);
  assert.ok(texts.some(({ key }) => key === null));
  let compared = 0;
  for (const [index, a] of texts.entries()) {
    for (const b of texts.slice(index % 7).filter((_, at) => at % 7 === 0)) {
      const wanted = Math.sign(collator.compare(a.text, b.text));
      assert.equal(Math.sign(compareNaturally(a, b)), wanted, `${a.text} and ${b.text}`);
      compared += 1;
    }
  }
  assert.ok(compared > 10_000);
});

test('a number of more digits than the collator takes at once is left to it', () => {
  assert.equal(toNaturalText('1'.repeat(251)).key, null);
  assert.notEqual(toNaturalText('1'.repeat(250)).key, null);
});
