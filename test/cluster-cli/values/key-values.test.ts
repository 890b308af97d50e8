import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fc } from '../../lab/fast-check.ts';
import {
  formatKeyValues,
  type KeyedValue,
  parseKeyValues,
  parseList,
} from '../../../cluster-cli/values/key-values.ts';

function parse(text: string): Record<string, KeyedValue> {
  return Object.fromEntries(parseKeyValues('-O', text).map(({ key, value }) => [key, value]));
}
const text = (value: string): KeyedValue => ({ kind: 'text', text: value });

test('values keep everything but the escapes', () => {
  assert.deepEqual(parse('a=1,b=x\\,y,c=k=v,d=,e=\\\\'), {
    a: text('1'),
    b: text('x,y'),
    c: text('k=v'),
    d: text(''),
    e: text('\\'),
  });
});

test('a bare key is true, no_ is false, a minus and the word default unset', () => {
  assert.deepEqual(parse('a,no_b,-c,d=default,e=-'), {
    a: { kind: 'flag', isSet: true },
    b: { kind: 'flag', isSet: false },
    c: { kind: 'unset' },
    d: { kind: 'unset' },
    e: text('-'),
  });
});

test('@ names a file, a backslash before it does not', () => {
  assert.deepEqual(parse('a=@/etc/x\\,y,b=\\@home,c=x@y,d=@-'), {
    a: { kind: 'file', path: '/etc/x,y' },
    b: text('@home'),
    c: text('x@y'),
    d: { kind: 'file', path: '-' },
  });
});

test('a backslash at the end stands for itself, as in Ganeti', () => {
  assert.deepEqual(parse('a=x\\'), { a: text('x\\') });
});

test('a key that is there twice is refused in the words of Ganeti', () => {
  assert.throws(() => parse('a=1,b=2,a=3'), {
    code: 'USAGE',
    message: "Duplicate key 'a' in option -O",
  });
});

test('a comma that was meant for the value is refused with a way that works', () => {
  for (const wrong of ['motd=hello, world', 'motd=hello, big world,b=2', 'a=1,big world'])
    assert.throws(
      () => parse(wrong),
      ({ code, hint }: { code: string; hint: string }) => {
        const [, pasted = ''] = /-O '(.+)'$/.exec(hint) ?? [];
        assert.deepEqual([code, parse(pasted)], ['USAGE', { key: text('one, two') }]);
        return true;
      },
    );
});

test('an element without a key is refused', () => {
  for (const wrong of ['a=1,,b=2', 'a=1,', '=x', ',', 'no_', '-']) {
    assert.throws(() => parse(wrong), { code: 'USAGE' }, wrong);
  }
});

test('nothing is an empty list', () => {
  assert.deepEqual([parse(''), parseList('')], [{}, []]);
});

test('a key of an object prototype is a key like others', () => {
  assert.deepEqual(
    parseKeyValues('-O', '__proto__=1,constructor=2').map(({ key }) => key),
    ['__proto__', 'constructor'],
  );
});

test('what is formatted parses back, whatever the values are', () => {
  const key = fc.stringMatching(/^[a-z][a-z0-9_.-]{0,8}$/).filter((name) => name !== '__proto__');
  const value = fc.string({ unit: 'grapheme' }).filter((each) => each !== 'default');
  fc.assert(
    fc.property(fc.dictionary(key, value, { minKeys: 1 }), (values) => {
      const back = Object.fromEntries(
        Object.entries(parse(formatKeyValues(values))).map(([name, each]) => [
          name,
          each.kind === 'text' ? each.text : each,
        ]),
      );
      assert.deepEqual(back, { ...values });
    }),
  );
});

test('any text is parsed or refused as USAGE, and no key is empty', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'ab=,\\@-_n o'.split('')) }), (any) => {
      try {
        for (const { key } of parseKeyValues('-O', any)) assert.notEqual(key, '');
      } catch (error) {
        assert.equal((error as { code: string }).code, 'USAGE');
      }
    }),
  );
});
