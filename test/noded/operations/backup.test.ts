import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import { exportInstanceHandler, removeExportHandler } from '../../../noded/operations/backup.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { parseOpcode } from '../support/opcodes.ts';
import { clusterRecord, instanceRecord } from '../support/records.ts';

const { signal } = new AbortController();
const SETTINGS = {
  ...{ name: 'debian', trusted: false, hidden: false, blacklisted: false },
  ...{ osParameters: {}, osParametersPrivate: {} },
};
const NAME = 'web1.example.com';

interface World {
  readonly changes?: Partial<InstanceRecord>;
  readonly isRunning?: boolean;
  readonly scripts?: 'appliance' | 'host' | 'none';
  readonly failure?: AppError;
  readonly startFailure?: AppError;
}

function lab({ changes, isRunning = false, scripts = 'appliance', failure, startFailure }: World) {
  let isUp = isRunning;
  const record = instanceRecord(
    { disks: [{ sizeBytes: 10 * MIB }, { sizeBytes: 20 * MIB }] },
    { osType: 'debian', installState: 'installed', ...changes },
  );
  const calls: string[] = [];
  const unfinished = {
    createDump: async (disk: number, bytes: number) => {
      calls.push(`dump ${disk} ${bytes}`);
      return `/dump${disk}`;
    },
    cutDump: async (disk: number, bytes: number) => void calls.push(`cut ${disk} ${bytes}`),
    finish: async ({ whole }: { readonly whole: unknown }) => {
      calls.push(`finish ${JSON.stringify(whole)}`);
      return '/exports/web1';
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
  const path = { export: '/os/export' };
  const dependencies = {
    instances: {
      findByName: async () => record,
      update: async (_: string, change: (current: InstanceRecord) => InstanceRecord) =>
        change(record),
    },
    runner: {
      isRunning: () => isUp,
      checkDisksUnused: async () => void calls.push('checkDisksUnused'),
      checkRunnable: async () => undefined,
      stop: async (...[, timeoutS, , kind]: readonly unknown[]) => {
        isUp = false;
        calls.push(`stop ${String(timeoutS)} ${String(kind)}`);
      },
      start: async () => {
        calls.push('start');
        if (startFailure !== undefined) throw startFailure;
      },
    },
    exports: {
      begin: async () => unfinished,
      check: async (name: string) => void calls.push(`check ${name}`),
      remove: async (name: string) => void calls.push(`remove ${name}`),
    },
    disks: { checkSpace: async () => void calls.push('checkSpace') },
    osRegistry: {
      find: async (_: string, { forceVariant }: { readonly forceVariant: boolean }) => ({
        definition: {
          ...{ name: 'debian', path: '/os' },
          applianceScripts: scripts === 'appliance' ? path : {},
          hostScripts: scripts === 'host' ? path : {},
        },
        forceVariant,
      }),
    },
    clusters: {
      load: async () => clusterRecord,
      loadOs: async () => SETTINGS,
      loadProfile: async () => undefined,
    },
    installer: {
      enterRoom: async (_: unknown, { isFromMedium }: { readonly isFromMedium: boolean }) => {
        calls.push(`room ${isFromMedium}`);
        return { [Symbol.dispose]: () => void calls.push('leave') };
      },
      runScript: async ({
        dumps,
      }: {
        readonly dumps: readonly { readonly sizeBytes: number }[];
      }) => {
        calls.push(`script ${dumps.map(({ sizeBytes }) => sizeBytes / MIB).join()}`);
        if (failure !== undefined) throw failure;
        return [5, 7];
      },
    },
    nodeName: 'node1.example.com',
    clock: { now: () => 0 },
  } as unknown as OperationDependencies;
  const report = {
    log: (line: string, level?: string) => void calls.push(level ? `${level}: ${line}` : line),
  };
  return { calls, dependencies, context: { signal, report, jobId: 1 } as unknown as JobContext };
}

async function exportOf(world: World): Promise<{ calls: string[]; result: Promise<unknown> }> {
  const { calls, dependencies, context } = lab(world);
  const opcode = parseOpcode({ opcode: 'BACKUP_EXPORT', name: NAME, shutdownTimeoutS: 8 });
  assert.ok(opcode.opcode === 'BACKUP_EXPORT');
  const execute = await exportInstanceHandler(dependencies).prepare(opcode, signal);
  return { calls, result: Promise.resolve(execute(context)) };
}

const DUMPED = [
  ...['checkSpace', 'checkDisksUnused'],
  // Twice the size of the disk and 64 MiB.
  ...[`dump 0 ${84 * MIB}`, `dump 1 ${104 * MIB}`, 'room false', 'script 84,104'],
  ...['cut 0 5', 'cut 1 7', 'leave', '2 dump(s), 12 bytes'],
];

test('a script in the appliance dumps each disk into a file of bounded size', async () => {
  const { calls, result } = await exportOf({});
  assert.deepEqual(await result, { name: NAME, path: '/exports/web1', sizeBytes: 12 });
  assert.deepEqual(calls, [...DUMPED, 'finish null']);
});

test('a running instance is stopped for its export and started again', async () => {
  const { calls, result } = await exportOf({ isRunning: true });
  await result;
  const [space, unused, ...rest] = DUMPED;
  assert.deepEqual(calls, [space, unused, 'stop 8 interlude', ...rest, 'finish null', 'start']);
});

for (const [what, world, expected] of [
  ['stopped', {}, { code: 'SCRIPT_FAILED', message: 'no luck' }],
  ['running', { isRunning: true }, { code: 'SCRIPT_FAILED', message: 'no luck' }],
  [
    'running and not startable',
    { isRunning: true, startFailure: new AppError('HOST_PREREQUISITE', 'no bridge') },
    {
      code: 'SCRIPT_FAILED',
      message: `no luck; and '${NAME}' was stopped for the export and did not start again: no bridge`,
      hint: `Start it: gnt-instance startup ${NAME}`,
    },
  ],
] as const) {
  test(`a failed export of an instance that was ${what} fails with its own code`, async () => {
    const failure = new AppError('SCRIPT_FAILED', 'no luck');
    const { calls, result } = await exportOf({ ...world, failure });
    await assert.rejects(result, expected);
    assert.equal(calls.includes('start'), what !== 'stopped');
    assert.ok(!calls.some((call) => call.startsWith('finish')));
  });
}

test('an export that is complete says so when the instance does not start', async () => {
  const startFailure = new AppError('HOST_PREREQUISITE', 'no bridge');
  const { result } = await exportOf({ isRunning: true, startFailure });
  await assert.rejects(result, { message: /^the export is complete, but/ });
});

const PROFILES =
  'the export holds the names of profiles, which must exist where it is imported: a, b';
const BOOTENV = `warn: the export does not hold the boot environment 'rescue': set it after the import with gnt-instance modify --bootenv rescue`;
const MISSING: readonly (readonly [string, Partial<InstanceRecord>, readonly string[]])[] = [
  ['with profiles', { profiles: ['a', 'b'] }, [PROFILES]],
  ['with a boot environment', { bootEnv: 'rescue' }, [BOOTENV]],
  ['that boots from its disk', { bootEnv: 'local' }, []],
];
for (const [what, changes, missing] of MISSING) {
  test(`an export of an instance ${what} names ${missing.length} missing part(s)`, async () => {
    const { calls, result } = await exportOf({ changes });
    await result;
    const after = calls.slice(calls.indexOf('2 dump(s), 12 bytes') + 1);
    assert.deepEqual(after, [...missing, 'finish null']);
  });
}

for (const [what, world, code, message] of [
  [
    'with a script, that is not installed',
    { changes: { installState: 'created' } },
    ...(['INSTANCE_STATE', /not installed \(created\) and cannot be exported/] as const),
  ],
  [
    'without a script, that is being installed',
    { scripts: 'none', changes: { installState: 'installing' } },
    ...(['INSTANCE_STATE', /is not installed \(installing\)/] as const),
  ],
  [
    'without an OS, whose installation failed',
    { changes: { osType: null, installState: 'failed' } },
    ...(['INSTANCE_STATE', /is not installed \(failed\)/] as const),
  ],
  ['with an untrusted script for the host', { scripts: 'host' }, 'OS_NOT_TRUSTED', /debian/],
] as const) {
  test(`the export of an instance ${what} is refused`, async () => {
    await assert.rejects(exportOf(world), { code, message });
  });
}

for (const world of [
  { scripts: 'none' },
  { changes: { osType: null } },
  { changes: { osType: null, installState: 'created' } },
] as const) {
  test(`disks are dumped whole: ${JSON.stringify(world)}`, async () => {
    // No script, so the driver of the disks is asked.
    const { calls, result } = await exportOf(world);
    await assert.rejects(result, TypeError);
    assert.ok(!calls.some((call) => call.startsWith('script')));
  });
}

test('an export is checked before it is removed', async () => {
  const { calls, dependencies, context } = lab({});
  const opcode = { opcode: 'BACKUP_REMOVE', name: NAME } as const;
  const execute = await removeExportHandler(dependencies).prepare(opcode, signal);
  assert.deepEqual(calls, [`check ${NAME}`]);
  assert.deepEqual(await execute(context), { name: NAME });
  assert.deepEqual(calls, [`check ${NAME}`, `remove ${NAME}`]);
});
