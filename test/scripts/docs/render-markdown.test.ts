import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paragraph, table, terms } from '../../../cluster-cli/manual/page.ts';
import { renderMarkdown } from '../../../scripts/docs/render-markdown.ts';

function render(block: ReturnType<typeof paragraph>): readonly string[] {
  return renderMarkdown({ name: 'x', blocks: [block] })
    .trimEnd()
    .split('\n')
    .slice(4);
}

test('angle brackets and asterisks outside of code are escaped', () => {
  assert.deepEqual(render(paragraph('a <b> *c* `<d>`')), ['a \\<b> \\*c\\* `<d>`']);
});

test('a table becomes a list when a row is too long', () => {
  assert.deepEqual(render(table(['A', 'B'], [['`a|b`', 'c']])), [
    '| A | B |',
    '| --- | --- |',
    '| `a\\|b` | c |',
  ]);
  const [first] = render(table(['A', 'B'], [['`a`', 'word '.repeat(30).trim()]]));
  assert.match(first ?? '', /^- `a`: word word/);
});

test('a term is code and its text is wrapped below it', () => {
  const lines = render(terms([['--x', 'word '.repeat(40).trim()]]));
  assert.match(lines[0] ?? '', /^- `--x`: word/);
  assert.ok(lines.every((line) => line.length <= 110));
  assert.match(lines[1] ?? '', /^ {2}word/);
});
