import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRunner } from '../../../noded/instances/instance-runner.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { rebootInstanceHandler } from '../../../noded/operations/power.ts';
import { parseOpcode } from '../support/opcodes.ts';
import { clusterRecord, instanceRecord } from '../support/records.ts';

const { signal } = new AbortController();

/** A running instance with a kernel from a folder that the remote API may name. */
function prepareWith(remoteFolders: readonly string[]) {
  const checked: string[] = [];
  const runner = {
    running: () => ({}),
    checkRunnable: async () => void checked.push('runnable'),
  } as unknown as InstanceRunner;
  const instance = instanceRecord({ hvparams: { kernel_path: '/srv/kernels/./vmlinuz' } });
  const handler = rebootInstanceHandler({
    ...{ runner, instances: { findByName: async () => instance } },
    clusters: { load: async () => ({ ...clusterRecord, remoteFolders: [...remoteFolders] }) },
  } as unknown as OperationDependencies);
  const prepare = (kind: 'soft' | 'hard' | 'full'): Promise<unknown> => {
    const opcode = parseOpcode({ opcode: 'INSTANCE_REBOOT', name: 'web1', kind });
    assert.ok(opcode.opcode === 'INSTANCE_REBOOT');
    return handler.prepare(opcode, signal);
  };
  return { checked, prepare };
}

test('a reboot opens no file below a folder that the operator took back', async () => {
  for (const kind of ['soft', 'full'] as const) {
    const { checked, prepare } = prepareWith([]);
    await assert.rejects(prepare(kind), { code: 'PATH_NOT_ALLOWED' });
    assert.deepEqual(checked, []);
  }
});

test('a reboot that can open all of its files is prepared; a reset opens none', async () => {
  const { checked, prepare } = prepareWith(['/srv/kernels']);
  await prepare('full');
  assert.deepEqual(checked, ['runnable']);
  await prepareWith([]).prepare('hard');
});
