import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  compileRegex,
  findMatch,
} from '../../../../../noded/netboot/template/regex/match-regex.ts';
import { CallError } from '../../../../../noded/netboot/template/template-error.ts';
import { fc } from '../../../../lab/fast-check.ts';

const free = (): void => undefined;

function slotsOf(pattern: string, text: string): readonly number[] | null {
  const codes = [...text].map((character) => character.codePointAt(0) ?? 0);
  return findMatch(compileRegex(pattern, free), codes, 0, free);
}

/** Returns start and end of the match and of each group by JavaScript's own expressions. */
function slotsOfJavaScript(pattern: string, text: string): readonly number[] | null {
  const found = new RegExp(pattern, 'du').exec(text);
  return found?.indices?.flatMap((range) => [...(range ?? [-1, -1])]) ?? null;
}

/** Sets in RE2's syntax, and the same sets in JavaScript's. */
const SETS = [
  ['[[:alpha:]]', '[A-Za-z]'],
  ['[[:alnum:]]', '[A-Za-z0-9]'],
  ['[[:digit:]]', '[0-9]'],
  ['[[:lower:]]', '[a-z]'],
  ['[[:upper:]]', '[A-Z]'],
  ['[[:space:]]', '[\\t-\\r ]'],
  ['[[:punct:]]', '[!-\\/:-@\\[-`\\{-~]'],
  ['[[:word:]]', '[A-Za-z0-9_]'],
  ['[[:xdigit:]]', '[0-9A-Fa-f]'],
  ['[[:blank:]]', '[\\t ]'],
  ['[[:^digit:]_]', '[^0-9]'],
  ['[^[:^digit:]]', '[0-9]'],
  ['\\d', '[0-9]'],
  ['\\D', '[^0-9]'],
  ['\\w', '[A-Za-z0-9_]'],
  ['\\W', '[^A-Za-z0-9_]'],
  ['\\s', '[\\t\\n\\f\\r ]'],
  ['\\S', '[^\\t\\n\\f\\r ]'],
  ['[\\d_-]', '[0-9_\\-]'],
  ['[^\\s\\w]', '[^\\t\\n\\f\\r A-Za-z0-9_]'],
  ['.', '[^\\n]'],
  ['(?s).', '[^]'],
  ['(?s)(?-s).', '[^\\n]'],
  ['\\n|\\t|\\r|\\f|\\v|\\a', '[\\n\\t\\r\\f\\v\\x07]'],
  ['\\x41|\\x{42}|\\x{e9}', '[AB\\xe9]'],
  ['\\.|\\[|\\`|\\~|\\-', '[.\\[`~\\-]'],
  ['[a-c]', '[abc]'],
  ['[]a]', '[\\]a]'],
  ['[^]a]', '[^\\]a]'],
  ['[a-]', '[a\\-]'],
  ['[-a]', '[a\\-]'],
  ['[\\x41-\\x{43}\\]]', '[ABC\\]]'],
  ['(?i)[x-z]', '[x-zX-Z]'],
  ['(?i)É', '[éÉ]'],
  ['(?i)a(?-i)|b', '[Aab]'],
  ['(?i:a)|b', '[Aab]'],
  ['{|}|]', '[\\{\\}\\]]'],
] as const;

test('the sets of RE2 contain the characters that its documents state', () => {
  const all = Array.from({ length: 0x180 }, (_, code) => String.fromCodePoint(code));
  for (const [pattern, same] of SETS) {
    const expected = new RegExp(`^${same}$`, 'u');
    const differ = all.filter(
      (text) => (slotsOf(`^(?:${pattern})$`, text) !== null) !== expected.test(text),
    );
    assert.deepEqual(differ, [], pattern);
  }
});

test('edges depend on lines with (?m) only, and \\A and \\z never', () => {
  const places = (pattern: string): string =>
    [...'ab\ncd\n'].reduce<string>((text, _, at) => {
      const codes = [...'ab\ncd\n'].map((each) => each.codePointAt(0) ?? 0);
      const [start] = findMatch(compileRegex(pattern, free), codes, at, free) ?? [];
      return text + (start === at ? 'x' : '.');
    }, '');
  assert.deepEqual(
    ['^', '(?m)^', '(?m)\\A', '(?m)$', '\\b', '\\B', '(?m:^)c', '(?m)(?-m)^'].map(places),
    ['x.....', 'x..x..', 'x.....', '..x..x', 'x.xx.x', '.x..x.', '...x..', 'x.....'],
  );
  assert.deepEqual(
    ['c$', 'c\\z', '(?m)a\\z'].map((pattern) => slotsOf(pattern, 'a\nc')),
    [[2, 3], [2, 3], null],
  );
});

/**
 * Patterns whose meaning RE2 and JavaScript share: groups are outside of repetitions, and a
 * repeated part matches at least one character.
 */
const { tree } = fc.letrec<{ tree: string; plain: string }>((tie) => {
  const character = fc.constantFrom('a', 'b', '[ab]', '[^a]', '\\w', 'é');
  const leaf = fc.oneof(character, fc.constantFrom('\\b', '(?:)', '^', '$'));
  const repeated = fc
    .tuple(
      fc.tuple(character, tie('plain')).map((parts) => parts.join('')),
      fc.constantFrom('*', '+', '?', '{2}', '{1,2}', '{0,3}', '{1,}'),
      fc.constantFrom('', '?'),
    )
    .map(([inner, bounds, lazy]) => `(?:${inner})${bounds}${lazy}`);
  const alternatives = (of: fc.Arbitrary<string>): fc.Arbitrary<string> =>
    fc.array(of, { minLength: 1, maxLength: 3 }).map((parts) => `(?:${parts.join('|')})`);
  const sequence = (of: fc.Arbitrary<string>): fc.Arbitrary<string> =>
    fc.array(of, { maxLength: 3 }).map((parts) => parts.join(''));
  const plain = [repeated, alternatives(tie('plain')), sequence(tie('plain'))];
  return {
    plain: fc.oneof({ depthSize: 'small', withCrossShrink: true }, leaf, ...plain),
    tree: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      tie('plain'),
      tie('tree').map((inner) => `(${inner})`),
      alternatives(tie('tree')),
      sequence(tie('tree')),
    ),
  };
});

test('prefers the same match and groups as the expressions of JavaScript', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', ' ', 'é'), maxLength: 6 });
  const property = fc.property(tree, text, (pattern, of) => {
    assert.deepEqual(slotsOf(pattern, of), slotsOfJavaScript(pattern, of));
  });
  fc.assert(property, { numRuns: 2000 });
});

test('counts characters, not halves of surrogate pairs', () => {
  assert.deepEqual(slotsOf('.(b)', '💾b'), [0, 2, 1, 2]);
  assert.deepEqual(slotsOf('[💾-💿]{2}', 'a💾💿'), [1, 3]);
});

test('names groups by ?P<name> and ?<name>', () => {
  const { names } = compileRegex('(a)(?P<first>b)(?:c)(?<_2>d)', free);
  assert.deepEqual(names, ['', '', 'first', '_2']);
});

test('refuses invalid and unsupported patterns', () => {
  const invalid = ['*a', '+', '?', 'a|*', 'a**', 'a+{2}', '^*', '\\b+', '(', ')', 'a)', '(?:a'];
  const sets = ['[', '[a', '[]', '[^]', '[b-a]', '[a-\\d]', '[[:nosuch:]a]', '[\\q]', '[a\\'];
  const escapes = ['\\', '\\q', '\\1', '\\ ', '\\x', '\\x4', '\\x{}', '\\é', '\\p{L}'];
  const groups = ['(?=a)', '(?!a)', '(?<=a)', '(?P<>a)', '(?P<1>a)', '(?x)a', '(?P=a)', '(?'];
  const repeats = ['a{2,1}', 'a{1001}', 'a{0,1001}', 'a{1001,}', 'a{2}{3}', '(?i-)a'];
  for (const pattern of [...invalid, ...sets, ...escapes, ...groups, ...repeats])
    assert.throws(() => compileRegex(pattern, free), CallError, pattern);
});

test('limits length, repetitions, groups, nesting and size of a pattern', () => {
  const nested = (depth: number): string => '(?:'.repeat(depth) + 'a' + ')'.repeat(depth);
  const allowed = ['a'.repeat(1024), 'a{1000}', 'a{0,1000}', '(a)'.repeat(31), nested(49)];
  for (const pattern of [...allowed, '[a]{1000,}', '(?:abcd){1000}']) compileRegex(pattern, free);
  const refused = ['a'.repeat(1025), '(a)'.repeat(32), nested(50), '(?:abcde){1000}'];
  for (const pattern of refused)
    assert.throws(() => compileRegex(pattern, free), CallError, pattern.slice(0, 9));
});

test('the work of a match is charged, and grows with text and pattern only linearly', () => {
  const cost = (pattern: string, length: number): number => {
    let steps = 0;
    const codes = Array.from({ length }, () => 97);
    findMatch(compileRegex(pattern, free), codes, 0, (spent) => (steps += spent));
    return steps;
  };
  const hostile = '(a*)*(a|a)*b';
  assert.ok(cost(hostile, 400) >= 400);
  assert.ok(cost(hostile, 400) < 2.2 * cost(hostile, 200));
  assert.ok(cost(`[${'b'.repeat(64)}]`, 100) > 2 * cost('b', 100));
  assert.ok(cost('a', 400) < 10, 'stops after the match');
  let steps = 0;
  compileRegex('(?:){1000}', (spent) => (steps += spent));
  assert.ok(steps > 1000);
  steps = 0;
  compileRegex(`[${'a'.repeat(1000)}]`, (spent) => (steps += spent));
  assert.ok(steps > 1000);
});
