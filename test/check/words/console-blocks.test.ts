import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findUncheckedBlocks } from './console-blocks.ts';

function check(text: string, testText = "'docs/howto/*.md'"): readonly string[] {
  return findUncheckedBlocks(
    new Map([
      ['docs/howto/a.md', text],
      ['test/e2e/x.test.ts', testText],
    ]),
  );
}

test('a block that runs in a test or gives a reason is fine', () => {
  assert.deepEqual(check('```console\n# gnt-os list\n```'), []);
  assert.deepEqual(check('```console\n# gnt-os list\n```', "'docs/howto/a.md'"), []);
  assert.deepEqual(check('```console no-run reason="two hosts"\n# gnt-os list\n```', ''), []);
  assert.deepEqual(check('```yaml\nlaunch: {}\n```', ''), []);
});

test('a block that no test runs, or without a reason, is found', () => {
  assert.deepEqual(check('x\n```console\n# ls\n```', ''), [
    'docs/howto/a.md:2: no test runs this page',
  ]);
  assert.match(check('```console no-run\n# ls\n```')[0] ?? '', /needs a reason/);
  assert.match(check('```\n# gnt-os list\n```')[0] ?? '', /info string 'console'/);
});
