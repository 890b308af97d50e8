import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import type { InstanceRunner } from '../../../noded/instances/instance-runner.ts';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { rebootInstanceHandler, stopInstanceHandler } from '../../../noded/operations/power.ts';
import { parseOpcode } from '../support/opcodes.ts';
import { clusterRecord, instanceRecord } from '../support/records.ts';

const { signal } = new AbortController();

/** Prepares a reboot of an instance with a kernel from a folder that the remote API may name. */
function prepareWith(
  remoteFolders: readonly string[],
  badLists?: AppError,
  bootEnv?: string,
  named: object = { hvparams: { kernel_path: '/srv/kernels/./vmlinuz' } },
) {
  const checked: string[] = [];
  const runner = {
    running: () => ({}),
    checkRunnable: async () => void checked.push('runnable'),
  } as unknown as InstanceRunner;
  const instance = instanceRecord({
    ...named,
    ...(bootEnv !== undefined && { bootEnv }),
  });
  const handler = rebootInstanceHandler({
    ...{ runner, instances: { findByName: async () => instance } },
    bootViews: {
      check: async () => Promise.reject(new AppError('BOOTENV_RENDER', 'no such param')),
    },
    lifecycles: { check: async () => badLists && Promise.reject(badLists) },
    clusters: {
      load: async () => ({ ...clusterRecord, remoteFolders: [...remoteFolders] }),
      loadProfile: async () => undefined,
    },
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

test('what an instance was installed from may be below a folder that was taken back', async () => {
  for (const named of [
    { osImage: '/srv/images/./a.raw' },
    { personalizationPackage: '/srv/images/./a.tar.gz' },
    { installParameters: { cdrom_image_path: '/srv/images/./a.iso' } },
  ]) {
    const { checked, prepare } = prepareWith([], undefined, undefined, named);
    await prepare('full');
    assert.deepEqual(checked, ['runnable']);
  }
});

test('a reboot that can open all of its files is prepared; a reset opens none', async () => {
  const { checked, prepare } = prepareWith(['/srv/kernels']);
  await prepare('full');
  assert.deepEqual(checked, ['runnable']);
  await prepareWith([]).prepare('hard');
});

test('a guest whose run lists cannot be read is not stopped for a reboot', async () => {
  const bad = new AppError('RUN_LIST_INVALID', 'README has no interpreter');
  for (const kind of ['soft', 'full'] as const) {
    await assert.rejects(prepareWith(['/srv/kernels'], bad).prepare(kind), {
      code: 'RUN_LIST_INVALID',
    });
  }
  await prepareWith([], bad).prepare('hard');
});

test('a failed decommissioning is told of this run, not of one before it', async () => {
  const record = instanceRecord();
  for (const state of ['failed', undefined] as const) {
    const handler = stopInstanceHandler({
      instances: { findByName: async () => record },
      runner: {
        checkDisksUnused: async () => undefined,
        running: () => ({}),
        stop: async () => undefined,
      },
      lifecycles: {
        state: () => state,
        current: () => ({ state: 'failed', kind: 'stop', reason: 'its list did not end' }),
      },
    } as unknown as OperationDependencies);
    const opcode = parseOpcode({ opcode: 'INSTANCE_SHUTDOWN', name: 'web1' });
    assert.ok(opcode.opcode === 'INSTANCE_SHUTDOWN');
    const run = await handler.prepare(opcode, signal);
    const stopping = run({ signal } as JobContext);
    if (state === undefined) await stopping;
    else await assert.rejects(stopping, { code: 'DECOMMISSION_TIMEOUT' });
  }
});

test('a reboot whose decommission list failed fails with the code of a shutdown', async () => {
  for (const reason of [null, 'its list did not end']) {
    const handler = rebootInstanceHandler({
      instances: { findByName: async () => instanceRecord() },
      runner: {
        running: () => ({}),
        checkRunnable: async () => undefined,
        reboot: async () => reason,
      },
      lifecycles: { check: async () => undefined },
      clusters: { load: async () => clusterRecord, loadProfile: async () => undefined },
    } as unknown as OperationDependencies);
    const opcode = parseOpcode({ opcode: 'INSTANCE_REBOOT', name: 'web1' });
    assert.ok(opcode.opcode === 'INSTANCE_REBOOT');
    const run = await handler.prepare(opcode, signal);
    const rebooting = run({ signal } as JobContext);
    if (reason === null) await rebooting;
    else
      await assert.rejects(rebooting, {
        code: 'DECOMMISSION_TIMEOUT',
        message: "'web1.example.com' was rebooted, but its list did not end",
      });
  }
});

test('a guest whose BootEnv cannot be rendered any more is not stopped for a reboot', async () => {
  for (const kind of ['soft', 'full'] as const) {
    await assert.rejects(prepareWith(['/srv/kernels'], undefined, 'rescue').prepare(kind), {
      code: 'BOOTENV_RENDER',
    });
  }
  await prepareWith([], undefined, 'rescue').prepare('hard');
});
