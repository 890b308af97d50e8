import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeMoving, type NodeDisks } from './judge-moving.ts';

const [A, B] = ['node1', 'node2'] as const;
const web = (primaryNode: string) => ({ uuid: 'web', name: 'web', primaryNode });
const at = (a: readonly string[], b: readonly string[]): readonly NodeDisks[] => [
  { node: A, entries: a },
  { node: B, entries: b },
];
const failed = [{ to: B, isDone: false }];

test('what a move that was cut off has left may be there, and nothing else', () => {
  assert.deepEqual(judgeMoving(at(['web'], ['copying-web']), [web(A)], failed, 0), []);
  assert.deepEqual(judgeMoving(at([], ['copying-web']), [], failed, 1), []);
  const done = [{ to: B, isDone: true }];
  for (const [moves, instances, removals] of [
    [[], [web(A)], 0],
    [done, [web(A)], 0],
    [failed, [], 0],
  ] as const)
    assert.equal(judgeMoving(at([], ['copying-web']), instances, moves, removals).length, 1);
});

test('disks of an instance never wait on its own node for their name, or beside themselves', () => {
  for (const entries of [['copying-web'], ['web', 'copying-web'], ['web', 'leaving-web']])
    assert.match(
      judgeMoving(at([], entries), [web(B)], failed, 0).join(),
      /on node2, of web, which is there/,
    );
});

test('what has left is kept while its node has it, too, and is nobody else’s', () => {
  assert.deepEqual(judgeMoving(at(['leaving-web'], ['web']), [web(B)], [], 0), []);
  const missing = judgeMoving(at(['leaving-web'], []), [web(B)], [], 0);
  assert.deepEqual(missing, ['leaving-web on node1, of web, and node2 does not have it']);
  assert.equal(judgeMoving(at(['leaving-web'], []), [], [], 1).length, 1);
});
