import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readScriptHeader } from '../../../../cluster-cli/commands/instance/run-list-header.ts';
import { threadMs } from '../../../lab/thread-time.ts';

const HEAD = '#!/bin/sh\n';
const TAIL = '# ...\necho\n';

for (const [what, script, inputs] of [
  ['starts of a header', `${HEAD}${'# ---\n'.repeat(100_000)}echo\n`, null],
  [
    'possible values',
    `${HEAD}# ---\n# Inputs:\n#   A:\n#     Possible Values:\n${'#     - text:a\n'.repeat(9000)}${TAIL}`,
    1,
  ],
  [
    'inputs',
    `${HEAD}# ---\n# Inputs:\n${Array.from({ length: 6000 }, (_, at) => `#   A${at}: {Default: "text:a"}\n`).join('')}${TAIL}`,
    6000,
  ],
] as const) {
  test(`a script with very many ${what} is read in no time`, () => {
    const tookMs = threadMs(() => {
      assert.equal(readScriptHeader(script, 'f').inputs?.length ?? null, inputs);
    });
    assert.ok(tookMs < 3000, `${tookMs} ms`);
  });
}

test('a header is found behind comments that only begin as one', () => {
  const begun = '# ---\n# of something else\n\n# ---\n# RightScript Name: x\n# Inputs:\n#   A:\n';
  const found = readScriptHeader(`${HEAD}${begun}#     Required: true\n${TAIL}`, 'f');
  assert.deepEqual(found.inputs, [{ name: 'A', required: true, default: null }]);
  assert.throws(
    () => readScriptHeader(`${HEAD}${begun}#     Required: maybe\n${TAIL}`, 'f'),
    /^AppError: f: line 9: Inputs\.A\.Required/,
  );
});
