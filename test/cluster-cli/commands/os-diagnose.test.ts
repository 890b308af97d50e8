import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OsInfo } from '#shared/contract/api.ts';
import { diagnoseAll, findDiffering } from '../../../cluster-cli/commands/os/diagnose.ts';
import { sampleOs } from '../support/samples.ts';

const withDigest = (digest: string | null): Partial<OsInfo> => ({
  trust: { state: 'untrusted', digest, trustedAtMs: null },
});
const broken = sampleOs({ valid: false, ...withDigest(null) });
const good = sampleOs(withDigest('a'));
const judged = (...nodes: readonly (readonly OsInfo[])[]): readonly string[] =>
  diagnoseAll(
    nodes.map((operatingSystems, index) => ({
      node: `n${index}`,
      operatingSystems: [...operatingSystems],
    })),
  ).map(({ name, status }) => `${name} ${status}`);

test('a definition is valid when every node that answers has it and can use it', () => {
  assert.deepEqual(judged([good], [good]), ['debian valid']);
  assert.deepEqual(judged([good], [broken]), ['debian partial']);
  assert.deepEqual(judged([good], []), ['debian partial']);
  assert.deepEqual(judged([broken], []), ['debian invalid']);
  assert.deepEqual(judged([sampleOs({ name: 'b' })], [sampleOs({ name: 'a' })]), [
    'a partial',
    'b partial',
  ]);
});

test('nodes that do not have it are named, silent ones are not among them', () => {
  const [diagnosis] = diagnoseAll([
    { node: 'n0', operatingSystems: [good] },
    { node: 'n1', operatingSystems: [] },
    { node: 'n2', silent: 'no answer' },
  ]);
  assert.deepEqual(diagnosis?.missing, ['n1']);
});

test('another content under the same name is told', () => {
  const nodes = (digest: string) => [
    { node: 'n0', operatingSystems: [good] },
    { node: 'n1', operatingSystems: [sampleOs(withDigest(digest)), broken] },
  ];
  assert.equal(diagnoseAll(nodes('a'))[0]?.isSame, true);
  assert.equal(diagnoseAll(nodes('b'))[0]?.isSame, false);
});

test('who lacks what this node has, cannot use it or has another content, is named', () => {
  const nodes = [
    { node: 'n0', operatingSystems: [good] },
    { node: 'n1', operatingSystems: [] },
    { node: 'n2', operatingSystems: [sampleOs(withDigest('b'))] },
    { node: 'n3', operatingSystems: [broken] },
    { node: 'n4', silent: 'no answer' },
  ];
  const found = ['n1 (missing)', 'n2 (other content)', 'n3 (invalid)'];
  assert.deepEqual([...findDiffering([good], nodes)], [['debian', found]]);
  assert.deepEqual([...findDiffering([good], nodes.slice(0, 1))], []);
});
