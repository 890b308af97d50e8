import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseHelpColumns, readAppearance } from '../../../cluster-cli/terminal/terminal.ts';

for (const [what, environment, hasUnicode] of [
  ['no locale', {}, false],
  ['LANG alone', { LANG: 'C.UTF-8' }, true],
  ['LC_CTYPE before LANG', { LC_CTYPE: 'C', LANG: 'C.UTF-8' }, false],
  ['LC_ALL before the others', { LC_ALL: 'en_US.utf8', LC_CTYPE: 'C', LANG: 'C' }, true],
  ['an empty LC_ALL, which counts as unset', { LC_ALL: '', LC_CTYPE: 'C.UTF-8' }, true],
] as const) {
  test(`the locale of a terminal: ${what}`, () => {
    assert.equal(readAppearance(true, environment).hasUnicode, hasUnicode);
  });
}

for (const [what, isTty, environment, expected] of [
  ['a terminal', true, { TERM: 'xterm' }, [true, true]],
  ['a pipe', false, { TERM: 'xterm' }, [false, false]],
  ['a dumb terminal', true, { TERM: 'dumb' }, [false, false]],
  ['a terminal without colours', true, { NO_COLOR: '0' }, [true, false]],
  ['an empty NO_COLOR', true, { NO_COLOR: '' }, [true, true]],
] as const) {
  test(`${what} ${expected[0] ? 'moves its cursor' : 'gets plain lines'}, colours: ${expected[1]}`, () => {
    const { isTerminal, hasColor } = readAppearance(isTty, environment);
    assert.deepEqual([isTerminal, hasColor], expected);
  });
}

for (const [ofTerminal, COLUMNS, columns] of [
  [60, '70', 60],
  [200, undefined, 80],
  [0, '70', 70],
  [undefined, '70', 70],
  [undefined, '100000', 80],
  [undefined, 'wide', 80],
  [undefined, undefined, 80],
] as const) {
  test(`help for ${ofTerminal} columns with COLUMNS=${COLUMNS} has ${columns}`, () => {
    assert.equal(chooseHelpColumns(ofTerminal, { COLUMNS }), columns);
  });
}
