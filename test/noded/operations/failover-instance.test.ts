import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { failoverInstanceHandler } from '../../../noded/operations/failover-instance.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';

const [LOST, OWN] = ['node1.example.com', 'node2.example.com'];

/** Prepares a failover on a node that cannot see the lease of the other one. */
function prepare(isOffline: boolean): Promise<unknown> {
  const beyond = new Error('it was let through');
  const handler = failoverInstanceHandler({
    instances: {
      findByName: async () => ({
        ...{ name: 'web1.example.com', primaryNode: LOST, diskTemplate: 'sharedfile' },
        installState: 'installed',
      }),
    },
    owns: (node: string) => node === OWN,
    nodeName: OWN,
    nodes: {
      flagsOf: async (node: string) => {
        if (node === OWN) throw beyond;
        return { drained: false, offline: isOffline };
      },
    },
    presenceOf: async () => 'gone',
    leases: {
      requireSeen: async (node: string) => {
        throw new AppError('HOST_PREREQUISITE', node);
      },
    },
  } as unknown as OperationDependencies);
  const opcode = { opcode: 'INSTANCE_FAILOVER', name: 'web1.example.com', node: OWN } as const;
  return Promise.resolve(handler.prepare(opcode, new AbortController().signal));
}

test('nothing is taken from a node whose lease cannot be seen, but from one that is marked offline', async () => {
  await assert.rejects(prepare(false), { code: 'HOST_PREREQUISITE' });
  await assert.rejects(prepare(true), { message: 'it was let through' });
});
