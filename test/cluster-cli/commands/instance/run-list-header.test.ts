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

test('a header whose aliases expand to too much is refused, and each hint is a sentence', () => {
  const many = (of: string): string => `[${Array<string>(9).fill(`*${of}`).join(', ')}]`;
  const bomb = `# a: &a [x]\n# b: &b ${many('a')}\n# c: &c ${many('b')}\n# d: ${many('c')}\n`;
  for (const [header, message] of [
    ['# Inputs: {__proto__: {Required: true}}\n', /^f: '__proto__' is not an input name$/],
    [bomb, /^f: its aliases expand to too much$/],
    ['# Inputs: {A: {Required: maybe}}\n', /^f: line 3: Inputs\.A\.Required: /],
    ['# Inputs: [\n', /^f: line \d: not valid YAML/],
  ] as const)
    assert.throws(() => readScriptHeader(`${HEAD}# ---\n${header}${TAIL}`, 'f'), {
      ...{ code: 'RUN_LIST_INVALID', message },
      hint: /^Write /,
    });
  assert.throws(() => readScriptHeader(`${HEAD}# ---\n# Inputs: {}\necho\n`, 'f'), {
    hint: /^End the header/,
  });
});
