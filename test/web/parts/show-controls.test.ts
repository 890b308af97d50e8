import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fc } from '../../lab/fast-check.ts';
import { showControls } from '../../../web/parts/show-controls.ts';

test('escape sequences and changes of direction are visible', () => {
  assert.equal(showControls('a\u001b[2Jb'), 'a‹U+001B›[2Jb');
  assert.equal(showControls('exe\u202egpj'), 'exe‹U+202E›gpj');
  assert.equal(showControls('zero\u200bwidth\ufeff'), 'zero‹U+200B›width‹U+FEFF›');
});

test('text, tabs and lines stay as they are', () => {
  const text = 'größer\t日本\nzweite Zeile';
  assert.equal(showControls(text), text);
});

test('no text leaves a control or a change of direction', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(0xffff)), (codes) => {
      const text = String.fromCodePoint(...codes);
      assert.doesNotMatch(showControls(text), /(?![\t\n])[\p{Cc}\p{Cf}]/u);
    }),
  );
});
