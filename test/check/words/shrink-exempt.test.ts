import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shrinkExempt, withoutExempt } from './shrink-exempt.ts';

test('an exempt document hides its findings, and one without findings is a finding', () => {
  const found = new Map([
    ['a.md', 'a.md:1: x'],
    ['b.md', 'b.md:1: x'],
  ]);
  assert.deepEqual(withoutExempt('links', found, ['a.md', 'c.md']), [
    'b.md:1: x',
    'c.md: passes the check links: remove it from exempt.ts',
  ]);
});

test('shrinking removes what passes and adds nothing', () => {
  const places = {
    comments: new Map([
      ['bad', { words: 10, hits: 2 }],
      ['other', { words: 10, hits: 2 }],
      ['good', { words: 10, hits: 0 }],
    ]),
  };
  const documents = { links: new Map([['a.md', 'x']]) };
  assert.deepEqual(
    shrinkExempt({ comments: ['bad', 'good', 'gone'], links: ['a.md', 'b.md'] }, places, documents),
    { comments: ['bad'], links: ['a.md'] },
  );
});
