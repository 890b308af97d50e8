import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fc } from '../../lab/fast-check.ts';
import { createMask } from '#shared/secret/mask.ts';

test('replaces every occurrence of every value', () => {
  const mask = createMask(['hunter2', 'swordfish']);
  assert.equal(mask('hunter2 or swordfish or hunter2'), '<redacted> or <redacted> or <redacted>');
});

test('masks the longer of two values that contain each other, so that nothing of it is left', () => {
  assert.equal(createMask(['pass', 'password-1'])('password-1 pass'), '<redacted> <redacted>');
});

test('masks each line of a value of several lines', () => {
  const key = '-----BEGIN KEY-----\nMIIEpAIBAAKC\nq3dXk2\n-----END KEY-----\n';
  const mask = createMask([key]);
  assert.equal(mask('read MIIEpAIBAAKC'), 'read <redacted>');
  assert.equal(mask('q3dXk2'), '<redacted>');
});

test('masks the lines of a value that was written with carriage returns', () => {
  assert.equal(createMask(['first-line\r\nsecond-line\r\n'])('first-line!'), '<redacted>!');
});

test('masks a value that is shown without the blanks around it', () => {
  assert.equal(createMask(['  padded-secret\t\n'])('padded-secret'), '<redacted>');
});

test('leaves ordinary text alone when a value is too short to tell', () => {
  assert.equal(createMask(['yes', '', '1'])('yes, 1 of 11'), 'yes, 1 of 11');
});

test('takes values literally, whatever they mean to a regular expression', () => {
  assert.equal(createMask(['a.c$(x)*'])('abc a.c$(x)*'), 'abc <redacted>');
});

test('no value of four characters or more, blanks around it aside, survives in any text', () => {
  const value = fc
    .string({ minLength: 4, maxLength: 12 })
    .filter((text) => text.trim().length >= 4 && !'<redacted>'.includes(text.trim()));
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 4 }), fc.string(), (values, noise) => {
      const masked = createMask(values)(values.join(noise));
      const left = masked.replaceAll('<redacted>', '\u0000');
      for (const one of values) assert.ok(!left.includes(one), `${one} in ${left}`);
    }),
  );
});
