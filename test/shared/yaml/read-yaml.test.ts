import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readYaml } from '#shared/yaml/read-yaml.ts';
import { threadMs } from '../../lab/thread-time.ts';

const DEEP = /nested more than \d+ deep/;
/** Far above the limits of a document and of the stack. */
const TIMES = 100_000;
/** The square of these lengths takes several times as long. */
const MAX_MS = 3000;

function reasonOf(text: string): string {
  const read = readYaml(text, { version: '1.1' });
  return 'problem' in read ? read.problem.reason : 'taken';
}

const listOf = (item: (at: number) => string, length = 19_998): string =>
  Array.from({ length }, (_, at) => item(at)).join('');
const oneMap = listOf((at) => `k${at}: x\n`);

for (const [what, text, reason] of [
  ['lists in lists of one line', '- '.repeat(TIMES), DEEP],
  ['lists in lists, spread', '-      '.repeat(TIMES), DEEP],
  ['brackets', '['.repeat(TIMES), DEEP],
  ['brackets that end', '['.repeat(TIMES) + ']'.repeat(TIMES), DEEP],
  ['maps of one line', '{a: '.repeat(TIMES), DEEP],
  ['maps that are keys', '? '.repeat(TIMES), DEEP],
  ['thirty maps that are keys', '? '.repeat(30), /^line 1: a key is not a scalar$/],
  ['a list that is a key', 'a: 1\n? [x]\n: y\n', /^line 2: a key is not a scalar$/],
  ['an alias that is a key', 'a: &a [1]\nb:\n  *a : 2\n', /^line 3: a key is not a scalar$/],
  ['two documents', 'a: 1\n---\nb: 1\n', /^line 2: not valid YAML \(MULTIPLE_DOCS\)$/],
  ['a document that is none', 'a: [SECRET\n', /^line \d: not valid YAML \([A-Z_]+\)$/],
  [
    'words after a list',
    `x: ${'[] '.repeat(TIMES)}`,
    /^line 1: not valid YAML \(UNEXPECTED_TOKEN\)$/,
  ],
  [
    'a key that is twice',
    'a: 1\nb: {c: 1, "c": 2}\n',
    /^line 2: not valid YAML \(DUPLICATE_KEY\)$/,
  ],
  ['a key of the same map twice', 'a: {}\na: {}\n', /^line 2: not valid YAML \(DUPLICATE_KEY\)$/],
  [
    'a key of a number and of a word',
    'a: 1\na: "1"\n',
    /^line 2: not valid YAML \(DUPLICATE_KEY\)$/,
  ],
  ['one map whose last key is twice', `${oneMap}k1: y\n`, /^line 19999: .* \(DUPLICATE_KEY\)$/],
  ['an ordered map', `!!omap\n${listOf((at) => `- k${at}: x\n`)}`, /TAG_RESOLVE_FAILED/],
  ['a set', `!!set\n${listOf((at) => `? k${at}\n`)}`, /TAG_RESOLVE_FAILED/],
  ['an alias without an anchor', 'a: *b\nc: &b 1\n', /^line 1: an alias without an anchor$/],
  [
    'aliases of aliases',
    `a:\n${listOf((at) => `- &a${at} x\n`, 5000)}b: &b\n${listOf((at) => `- *a${at}\n`, 5000)}`,
    /^line 5203: more than 200 aliases$/,
  ],
  ['many lines', 'a\n'.repeat(TIMES), /more than 20000 lines/],
] as const)
  test(`refuses ${what}, in no time`, () => {
    const tookMs = threadMs(() => assert.match(reasonOf(text), reason));
    assert.ok(tookMs < MAX_MS, `${tookMs} ms`);
  });

test('a document for people is taken as the library takes it', () => {
  const read = readYaml('network: {version: 2}\nlist:\n  - - 1\n    - &a x\n  - *a\n? y\n');
  assert.ok('document' in read);
  assert.deepEqual(read.document.toJS(), {
    ...{ network: { version: 2 }, list: [[1, 'x'], 'x'], y: null },
  });
  assert.ok('document' in readYaml(''));
  const twice = readYaml('- name: x\n  name: x\n  path:\n  path:\n');
  assert.deepEqual('document' in twice && twice.document.toJS(), [{ name: 'x', path: null }]);
});

test('one map of twenty thousand keys, and merge keys, are taken in no time', () => {
  const merged = 'a: &a {b: 1}\nc: &c {d: 1}\ne:\n  <<: *a\n  <<: *c\n';
  const tookMs = threadMs(() => {
    assert.ok('document' in readYaml(oneMap, { version: '1.1' }));
    assert.ok('document' in readYaml(merged, { version: '1.1' }));
  });
  assert.ok(tookMs < MAX_MS, `${tookMs} ms`);
});

test('a document is bounded by its words too, by as many items as its reader says', () => {
  const many = `[${'[[[[[[[[1]]]]]]]],'.repeat(90)}]`;
  const read = readYaml(many, {}, 100);
  assert.ok('problem' in read);
  assert.match(read.problem.reason, /^it has more than 1200 words, signs and spaces$/);
  assert.ok('document' in readYaml(many));
});
