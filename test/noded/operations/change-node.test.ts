import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import { modifyNodeHandler } from '../../../noded/operations/change-node.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';

test('a node is marked offline also where nobody can say whether it runs', async () => {
  const logged: string[] = [];
  const handler = modifyNodeHandler({
    membership: { requireMember: () => undefined },
    nodes: {
      names: async () => ['node1', 'node2'],
      changeFlags: async () => ({ drained: false, offline: true }),
    },
    nodeName: 'node1',
    presenceOf: async () => Promise.reject(new AppError('STORE_UNAVAILABLE', 'no answer')),
  } as unknown as OperationDependencies);
  const { signal } = new AbortController();
  const opcode = { opcode: 'NODE_SET_PARAMS', name: 'node2', offline: true } as const;
  const execute = await handler.prepare(opcode, signal);
  const report = { log: (message: string) => void logged.push(message) };
  await execute({ signal, report } as unknown as JobContext);
  assert.deepEqual(logged, ['node node2 is offline']);
});

const REMARK = /^warn: gnt-noded still runs on node node2: .*--offline no$/;
for (const [what, changes, presence, flags, expected] of [
  ['offline and answers', { offline: true }, 'answers', { offline: true }, [REMARK, 'offline']],
  ['offline and hangs', { offline: true }, 'mute', { offline: true }, [REMARK, 'offline']],
  ['offline and is gone', { offline: true }, 'gone', { offline: true }, ['offline']],
  ['drained', { drained: true }, 'answers', { drained: true }, ['drained']],
  ['online', { offline: false }, 'answers', {}, ['neither drained nor offline']],
] as const) {
  test(`the log of a node that becomes ${what} has ${expected.length} line(s)`, async () => {
    const logged: string[] = [];
    const handler = modifyNodeHandler({
      membership: { requireMember: () => undefined },
      nodes: {
        names: async () => ['node1', 'node2'],
        changeFlags: async (_: string, asked: object) => {
          assert.deepEqual(asked, { drained: undefined, offline: undefined, ...changes });
          return { drained: false, offline: false, ...flags };
        },
      },
      nodeName: 'node1',
      presenceOf: async () => presence,
    } as unknown as OperationDependencies);
    const { signal } = new AbortController();
    const opcode = { opcode: 'NODE_SET_PARAMS', name: 'node2', ...changes } as const;
    const report = {
      log: (line: string, level?: string) => void logged.push(level ? `${level}: ${line}` : line),
    };
    const execute = await handler.prepare(opcode, signal);
    assert.deepEqual(await execute({ signal, report } as unknown as JobContext), {
      ...{ name: 'node2', drained: false, offline: false, ...flags },
    });
    assert.equal(logged.length, expected.length);
    assert.equal(logged.at(-1), `node node2 is ${String(expected.at(-1))}`);
    if (expected.length > 1) assert.match(logged[0] ?? '', REMARK);
  });
}

for (const [what, changes, isMember, expected] of [
  ['an unknown node', { name: 'node3', drained: true }, true, { code: 'NODE_NOT_FOUND' }],
  ['offline for this node', { name: 'node1', offline: true }, true, { code: 'CONFLICT' }],
  ['of a removed node', { name: 'node2', drained: true }, false, { code: 'NODE_REMOVED' }],
] as const) {
  test(`flags are refused: ${what}`, async () => {
    const handler = modifyNodeHandler({
      membership: {
        requireMember: () => {
          if (!isMember) throw new AppError('NODE_REMOVED', 'this node was removed');
        },
      },
      nodes: { names: async () => ['node1', 'node2'] },
      nodeName: 'node1',
    } as unknown as OperationDependencies);
    const opcode = { opcode: 'NODE_SET_PARAMS', ...changes } as const;
    await assert.rejects(
      async () => handler.prepare(opcode, new AbortController().signal),
      expected,
    );
  });
}

test('this node can be drained, and set online', async () => {
  for (const changes of [{ drained: true }, { offline: false }]) {
    const handler = modifyNodeHandler({
      membership: { requireMember: () => undefined },
      nodes: { names: async () => ['node1'] },
      nodeName: 'node1',
    } as unknown as OperationDependencies);
    const opcode = { opcode: 'NODE_SET_PARAMS', name: 'node1', ...changes } as const;
    assert.equal(typeof (await handler.prepare(opcode, new AbortController().signal)), 'function');
  }
});
