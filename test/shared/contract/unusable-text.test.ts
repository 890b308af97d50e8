import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findUnusable } from '#shared/contract/unusable-text.ts';
import { fc } from '../../lab/fast-check.ts';

test('finds a NUL character, half of a surrogate pair and __proto__ wherever they stand', () => {
  const proto = JSON.parse('{"a": {"__proto__": "x"}}') as unknown;
  const found = [{ a: ['b', 'c\0d'] }, { 'k\0': 1 }, ['\ud800'], proto, '\0'].map(findUnusable);
  assert.deepEqual(
    found.map((part) => part?.path),
    [['a', 1], [], [0], ['a'], []],
  );
  assert.deepEqual(
    found.map((part) => part?.problem),
    [
      'contains a NUL character',
      'a name contains a NUL character',
      'contains half of a surrogate pair',
      "a name must not be '__proto__'",
      'contains a NUL character',
    ],
  );
});

test('lets every other JSON pass, and no problem tells the text', () => {
  const text = fc.string({ unit: 'binary' }).map((one) => one.replaceAll('\0', ''));
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'grapheme' }), text, (value, other) => {
      const isFine = !JSON.stringify(value).includes('__proto__');
      if (isFine) assert.equal(findUnusable([value, other]), undefined);
      assert.doesNotMatch(JSON.stringify(findUnusable(`s3cret\0`)), /s3cret/);
    }),
  );
});

test('JSON that is nested as deep as a request is long is looked through', () => {
  const depth = 50_000;
  const nested: unknown = JSON.parse(`${'['.repeat(depth)}"\\u0000"${']'.repeat(depth)}`);
  assert.equal(findUnusable(nested)?.path.length, depth);
});
