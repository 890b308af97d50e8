import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readYaml } from '#shared/yaml/read-yaml.ts';

const DEEP = /deep in each other/;
/** Far beyond what a document may hold, and what the stack can. */
const TIMES = 100_000;

function reasonOf(text: string): string {
  const read = readYaml(text, { version: '1.1' });
  return 'problem' in read ? read.problem.reason : 'taken';
}

for (const [what, text, reason] of [
  ['lists in lists of one line', '- '.repeat(TIMES), DEEP],
  ['lists in lists, spread', '-      '.repeat(TIMES), DEEP],
  ['brackets', '['.repeat(TIMES), DEEP],
  ['brackets that end', '['.repeat(TIMES) + ']'.repeat(TIMES), DEEP],
  ['maps of one line', '{a: '.repeat(TIMES), DEEP],
  ['maps that are keys', '? '.repeat(TIMES), DEEP],
  ['thirty maps that are keys', '? '.repeat(30), /^line 1: a key is no word$/],
  ['a list that is a key', 'a: 1\n? [x]\n: y\n', /^line 2: a key is no word$/],
  ['an alias that is a key', 'a: &a [1]\nb:\n  *a : 2\n', /^line 3: a key is no word$/],
  ['two documents', 'a: 1\n---\nb: 1\n', /^line 2: not valid YAML \(MULTIPLE_DOCS\)$/],
  ['a document that is none', 'a: [SECRET\n', /^line \d: not valid YAML \([A-Z_]+\)$/],
  ['many lines', 'a\n'.repeat(TIMES), /more than 20000 lines/],
] as const)
  test(`refuses ${what}, in no time`, () => {
    const startedAt = process.cpuUsage();
    assert.match(reasonOf(text), reason);
    const { user } = process.cpuUsage(startedAt);
    assert.ok(user < 5_000_000, `${user / 1e6} s`);
  });

test('a document for people is taken as the library takes it', () => {
  const read = readYaml('network: {version: 2}\nlist:\n  - - 1\n    - &a x\n  - *a\n? y\n');
  assert.ok('document' in read);
  assert.deepEqual(read.document.toJS(), {
    ...{ network: { version: 2 }, list: [[1, 'x'], 'x'], y: null },
  });
  assert.ok('document' in readYaml(''));
});
