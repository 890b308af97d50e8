import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { JobSecrets } from '../../../noded/instances/parameters/job-secrets.ts';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import {
  rebootInstanceHandler,
  startInstanceHandler,
  stopInstanceHandler,
} from '../../../noded/operations/power.ts';
import { parseOpcode } from '../support/opcodes.ts';
import { clusterRecord, instanceRecord } from '../support/records.ts';

const { signal } = new AbortController();

interface Run {
  readonly device?: string | null;
  readonly lostSecrets?: readonly string[];
}

/** @param run of its guest; undefined: it is stopped */
function lab(run: Run | undefined, overrides: Partial<InstanceRecord> = {}) {
  let record = instanceRecord({ osParametersSecret: { old: 'x' } }, overrides);
  const calls: string[] = [];
  const secretNames = ({ osParameters }: JobSecrets): string => [...osParameters.keys()].join();
  const dependencies = {
    instances: {
      findByName: async () => record,
      update: async (_: string, change: (current: InstanceRecord) => InstanceRecord) => {
        record = change(record);
        calls.push(`names ${record.secretNames.join()}`);
        return record;
      },
    },
    runner: {
      isRunning: () => run !== undefined,
      running: () => run,
      checkRunnable: async () => void calls.push('checkRunnable'),
      checkDisksUnused: async () => void calls.push('checkDisksUnused'),
      start: async (_: InstanceRecord, given: JobSecrets) =>
        void calls.push(`start ${secretNames(given)}`),
      republish: async (_: InstanceRecord, given: JobSecrets) =>
        void calls.push(`republish ${secretNames(given)}`),
      reset: async () => void calls.push('reset'),
      reboot: async (...args: readonly unknown[]) => {
        calls.push(`reboot ${String(args[1])} ${String(args[3])}`);
        return null;
      },
      stop: async (_: InstanceRecord, timeoutS: number) => void calls.push(`stop ${timeoutS}`),
    },
    bootViews: { check: async () => void calls.push('bootViews') },
    lifecycles: {
      check: async () => void calls.push('runLists'),
      state: () => 'failed',
      current: () => ({ state: 'failed', kind: 'stop', reason: 'its list did not end' }),
    },
    clusters: { load: async () => clusterRecord, loadProfile: async () => undefined },
  } as unknown as OperationDependencies;
  const report = {
    log: (line: string, level?: string) => void calls.push(level ? `${level}: ${line}` : line),
  };
  return { calls, dependencies, context: { signal, report } as unknown as JobContext };
}

async function start(
  { dependencies, context }: ReturnType<typeof lab>,
  ...secrets: readonly string[]
): Promise<unknown> {
  const osParametersSecret = Object.fromEntries(secrets.map((name) => [name, 'value']));
  const opcode = parseOpcode({ opcode: 'INSTANCE_STARTUP', name: 'web1', osParametersSecret });
  assert.ok(opcode.opcode === 'INSTANCE_STARTUP');
  return (await startInstanceHandler(dependencies).prepare(opcode, signal))(context);
}

for (const [installState, isStarted] of [
  ['installed', true],
  ['created', true],
  ['installing', false],
  ['failed', false],
] as const) {
  test(`an instance that is ${installState} is ${isStarted ? 'started' : 'refused'}`, async () => {
    const stopped = lab(undefined, { installState });
    if (isStarted) {
      await start(stopped);
      assert.deepEqual(stopped.calls, ['checkRunnable', 'runLists', 'names old', 'start ']);
      return;
    }
    await assert.rejects(start(stopped), {
      ...{ code: 'INSTANCE_STATE', hint: /gnt-instance reinstall/ },
      message: `instance 'web1.example.com' is not installed (${installState}) and cannot be started`,
    });
    assert.deepEqual(stopped.calls, []);
  });
}

test('the start of an instance with a boot environment checks its view', async () => {
  const stopped = lab(undefined, { installState: 'installed', bootEnv: 'rescue' });
  await start(stopped);
  assert.deepEqual(stopped.calls.slice(0, 3), ['checkRunnable', 'bootViews', 'runLists']);
});

test('secrets of a start are named in the record before the guest has them', async () => {
  const stopped = lab(undefined, { installState: 'installed' });
  await start(stopped, 'new');
  assert.deepEqual(stopped.calls.slice(-2), ['names new,old', 'start new']);
});

const RUNS = 'instance web1.example.com is already running';
for (const [what, run, secrets, expected] of [
  ['without secrets', { device: null }, [], [RUNS]],
  [
    'with a secret',
    { device: 'gnt.com.0' },
    ['new'],
    [RUNS, 'names new,old', 'republish new', 'its guest can read these secrets now: new'],
  ],
] as const) {
  test(`the start of a running instance ${what} starts nothing`, async () => {
    const running = lab(run);
    assert.deepEqual(await start(running, ...secrets), { name: 'web1.example.com' });
    assert.deepEqual(running.calls, expected);
  });
}

test('a running guest that still lacks a secret is named in a warning', async () => {
  const running = lab({ device: 'gnt.com.0', lostSecrets: ['old'] });
  await start(running, 'new');
  assert.match(running.calls.at(-1) ?? '', /^warn: .*old/);
  const whole = lab({ device: 'gnt.com.0', lostSecrets: [] });
  await start(whole, 'new');
  assert.doesNotMatch(whole.calls.join('\n'), /warn/);
});

test('a running guest without a channel gets no secrets', async () => {
  const running = lab({ device: null });
  await assert.rejects(start(running, 'a', 'b'), {
    ...{ code: 'INSTANCE_STATE', hint: /--communication yes web1.example.com/ },
    message: /could read a, b$/,
  });
  assert.deepEqual(running.calls, []);
});

test('a stopped instance is stopped again without a failure of its last run', async () => {
  for (const [run, code] of [
    [undefined, null],
    [{}, 'DECOMMISSION_TIMEOUT'],
  ] as const) {
    const { dependencies, context, calls } = lab(run);
    const opcode = parseOpcode({ opcode: 'INSTANCE_SHUTDOWN', name: 'web1', timeoutS: 7 });
    assert.ok(opcode.opcode === 'INSTANCE_SHUTDOWN');
    const execute = await stopInstanceHandler(dependencies).prepare(opcode, signal);
    if (code === null) assert.deepEqual(await execute(context), { name: 'web1.example.com' });
    else await assert.rejects(Promise.resolve(execute(context)), { code });
    assert.deepEqual(calls, ['checkDisksUnused', 'stop 7']);
  }
});

for (const [kind, expected] of [
  ['hard', ['reset']],
  ['soft', ['checkRunnable', 'runLists', 'reboot 9 soft']],
  ['full', ['checkRunnable', 'runLists', 'reboot 9 full']],
] as const) {
  test(`a ${kind} reboot does: ${expected.join(', ')}`, async () => {
    const { dependencies, context, calls } = lab({});
    const opcode = parseOpcode({ opcode: 'INSTANCE_REBOOT', name: 'web1', kind, timeoutS: 9 });
    assert.ok(opcode.opcode === 'INSTANCE_REBOOT');
    const execute = await rebootInstanceHandler(dependencies).prepare(opcode, signal);
    assert.deepEqual(await execute(context), { name: 'web1.example.com' });
    assert.deepEqual(calls, expected);
    const stopped = rebootInstanceHandler(lab(undefined).dependencies);
    await assert.rejects(stopped.prepare(opcode, signal), {
      ...{ code: 'INSTANCE_STATE', hint: 'gnt-instance startup web1.example.com' },
    });
  });
}

test('a failed start of the checks starts nothing', async () => {
  const stopped = lab(undefined, { installState: 'installed' });
  const runner = {
    ...stopped.dependencies.runner,
    checkRunnable: async () => Promise.reject(new AppError('HOST_PREREQUISITE', 'no bridge')),
  };
  const dependencies = { ...stopped.dependencies, runner } as unknown as OperationDependencies;
  await assert.rejects(start({ ...stopped, dependencies }), { code: 'HOST_PREREQUISITE' });
  assert.deepEqual(stopped.calls, []);
});
