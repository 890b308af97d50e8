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
