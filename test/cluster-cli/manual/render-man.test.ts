import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  bullets,
  code,
  heading,
  type Page,
  paragraph,
  table,
  terms,
} from '../../../cluster-cli/manual/page.ts';
import { renderMan } from '../../../cluster-cli/manual/render-man.ts';

function render(blocks: Page['blocks'], seeAlso: readonly string[] = []): readonly string[] {
  const page: Page = { name: 'gnt-x', section: 8, purpose: 'does x', blocks, seeAlso };
  return renderMan(page, '2026-01-02').trimEnd().split('\n');
}

test('a page begins with its title, date and purpose', () => {
  assert.deepEqual(render([]), [
    '.TH GNT-X 8 2026-01-02 gnt "gnt manual"',
    '.SH NAME',
    'gnt\\-x \\- does x',
  ]);
});

test('text that roff would take for a request or an escape is printed as it is', () => {
  const shown = render([heading('D'), paragraph('.start \\n'), code("'quote\n.dot")]);
  assert.deepEqual(shown.slice(3), [
    '.SH D',
    '\\&.start \\en',
    '.PP',
    '.RS 4',
    '.nf',
    "\\&'quote",
    '\\&.dot',
    '.fi',
    '.RE',
  ]);
});

test('code spans are bold, and a code span at the begin of a line is no request', () => {
  assert.equal(render([heading('D'), paragraph('use `.x -y`')]).at(-1), 'use \\fB.x \\-y\\fR');
  assert.equal(render([heading('D'), paragraph('`.x`')]).at(-1), '\\&\\fB.x\\fR');
});

test('a row of a table is its first cell and its other cells by their heads', () => {
  const shown = render([heading('D'), table(['Key', 'Value', 'Default'], [['`a`', 'size', '1']])]);
  assert.deepEqual(shown.slice(-3), ['.TP', '\\fBa\\fR', 'Value: size. Default: 1.']);
});

test('a term without text still has a body', () => {
  assert.deepEqual(render([heading('D'), terms([['--x', '']])]).slice(-3), [
    '.TP',
    '\\fB\\-\\-x\\fR',
    '\\&',
  ]);
});

test('related pages are a list with commas between them', () => {
  assert.deepEqual(render([bullets([])], ['a(7)', 'b-c(8)']).slice(-3), [
    '.SH SEE ALSO',
    '.BR a (7),',
    '.BR b\\-c (8)',
  ]);
});
