import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findLongLines, findLongReadme } from './lengths.ts';

test('a line of more than 120 characters is found, but not a single long word', () => {
  const found = findLongLines(
    new Map([
      ['a.md', `short\n${'word '.repeat(25)}`],
      ['b.md', `- ${'x'.repeat(200)}`.slice(2)],
      ['c.ts', 'word '.repeat(50)],
    ]),
  );
  assert.deepEqual(found, ['a.md:2: 1 lines have more than 120 characters']);
});

test('a README of 201 lines is too long', () => {
  assert.deepEqual(findLongReadme(new Map([['README.md', 'x\n'.repeat(200)]])), []);
  assert.equal(findLongReadme(new Map([['README.md', 'x\n'.repeat(201)]])).length, 1);
});
