import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anchorsOf, findDeadLinks } from './links.ts';

function check(text: string): readonly string[] {
  return findDeadLinks(
    new Map([
      ['docs/a.md', text],
      ['docs/howto/b.md', '# How to\n\n## Use `gnt-os list`, twice\n\n## How to\n'],
      ['noded/main.ts', ''],
    ]),
  );
}

test('links to files, folders and headings that exist are fine', () => {
  const text = '[b](howto/b.md) [c](howto/) [d](../noded/main.ts) [e](howto/b.md#how-to-1)';
  assert.deepEqual(check(`# Top\n${text} [f](#top) [g](https://example.com/x#y)`), []);
});

test('a link to a missing file or heading is found with its line', () => {
  assert.deepEqual(check('text\n[x](howto/c.md) [y](howto/b.md#gone)'), [
    'docs/a.md:2: the link howto/c.md leads nowhere',
    'docs/a.md:2: the link howto/b.md#gone leads nowhere',
  ]);
  assert.deepEqual(check('[x]: gone.md'), ['docs/a.md:1: the link gone.md leads nowhere']);
});

test('code has no links', () => {
  assert.deepEqual(check('`[x](gone.md)`\n```\n[x](gone.md)\n```\n'), []);
});

test('anchors are those of GitHub', () => {
  const anchors = anchorsOf('# A b\n## A b\n### Use `x-y`: (z)\n```\n# no\n```\n');
  assert.deepEqual([...anchors], ['a-b', 'a-b-1', 'use-x-y-z']);
});
