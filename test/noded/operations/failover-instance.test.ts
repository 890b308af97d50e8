import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { NodeFlags } from '#shared/contract/node-flags.ts';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import { failoverInstanceHandler } from '../../../noded/operations/failover-instance.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { clusterRecord, instanceRecord } from '../support/records.ts';

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

const OPCODE = { opcode: 'INSTANCE_FAILOVER', name: 'web1.example.com', node: OWN } as const;
const NO_FLAGS: NodeFlags = { drained: false, offline: false };
const { signal } = new AbortController();

interface World {
  readonly changes?: Partial<InstanceRecord>;
  readonly presence?: 'answers' | 'mute' | 'gone';
  /** Flags of this node. */
  readonly flags?: NodeFlags;
  /** Failures of each look at the disks, in order. */
  readonly looks?: readonly (AppError | null)[];
  /** Readings of the clock, in order. */
  readonly clock?: readonly number[];
  /** Milliseconds that the other node's lease has left, at each look. */
  readonly waits?: readonly number[];
}

function lab({ changes, presence = 'gone', flags = NO_FLAGS, ...world }: World) {
  const looks = [...(world.looks ?? [])];
  const clock = [...(world.clock ?? [])];
  const calls: string[] = [];
  let record = instanceRecord(
    {},
    {
      ...{ primaryNode: LOST, diskTemplate: 'sharedfile', installState: 'installed' },
      ...{ adminState: 'down', ...changes },
    },
  );
  const call = (name: string) => async (): Promise<void> => void calls.push(name);
  const dependencies = {
    instances: {
      findByName: async () => record,
      update: async (_: string, change: (current: InstanceRecord) => InstanceRecord) => {
        calls.push('take');
        return (record = change(record));
      },
    },
    ...{ owns: (node: string) => node === OWN, nodeName: OWN },
    nodes: { flagsOf: async (node: string) => (node === OWN ? flags : NO_FLAGS) },
    presenceOf: async () => presence,
    leases: {
      requireSeen: call('requireSeen'),
      planTaking: async () => ({}),
      untilOver: async (_: string, how: { readonly onWait: (leftMs: number) => void }) => {
        for (const leftMs of world.waits ?? []) how.onWait(leftMs);
      },
    },
    runner: { checkRunnable: call('checkRunnable'), start: call('start') },
    ...{ osRegistry: {}, images: {}, applianceFiles: {} },
    clusters: { load: async () => clusterRecord, loadOs: async () => ({}) },
    bootViews: { check: call('bootViews') },
    disks: {
      checkSizes: async () => undefined,
      checkShared: async () => {
        const failure = looks.shift() ?? null;
        if (failure !== null) throw failure;
        calls.push('free');
      },
      settle: call('settle'),
    },
    clock: { monotonicMs: () => clock.shift() ?? 0 },
  } as unknown as OperationDependencies;
  const report = {
    log: (line: string, level?: string) => void calls.push(level ? `${level}: ${line}` : line),
  };
  const run = async (): Promise<unknown> => {
    const execute = await failoverInstanceHandler(dependencies).prepare(OPCODE, signal);
    calls.length = 0;
    return execute({ signal, report } as unknown as JobContext);
  };
  return { calls, run, record: () => record };
}

for (const [what, world, expected] of [
  [
    'with disks of its node alone',
    { changes: { diskTemplate: 'file' } },
    { code: 'NOT_SUPPORTED', hint: /gnt-backup import/ },
  ],
  [
    'during its installation',
    { changes: { installState: 'installing' } },
    { code: 'INSTANCE_STATE', message: /is being installed/ },
  ],
  [
    'of this node',
    { changes: { primaryNode: OWN } },
    { code: 'INSTANCE_STATE', message: /already on node node2/ },
  ],
  ['whose node answers', { presence: 'answers' }, { message: /node1.example.com, .*, answers$/ }],
  [
    'on a drained node',
    { flags: { drained: true, offline: false } },
    { code: 'NODE_DRAINED', details: { node: OWN } },
  ],
  [
    'whose disks are missing',
    { looks: [new AppError('DISK_MISSING', 'no folder')] },
    { code: 'DISK_MISSING' },
  ],
] as const) {
  test(`the failover of an instance ${what} is refused`, async () => {
    await assert.rejects(lab(world).run(), expected);
  });
}

const IN_USE = new AppError('DISK_IN_USE', 'pid 7');
const MOVED = `web1.example.com is on ${OWN} now: ${LOST} lost it`;
const LOST_SECRETS = /^warn: its secrets were only in the memory of the lost node\. .*supply a, b:/;

test('a mute node loses a stopped instance, which stays stopped', async () => {
  const { calls, run, record } = lab({ presence: 'mute', looks: [IN_USE] });
  const { name, uuid } = record();
  assert.deepEqual(await run(), { name, uuid, node: OWN });
  assert.deepEqual(calls, ['free', 'take', MOVED, 'settle']);
  assert.equal(record().primaryNode, OWN);
});

for (const [what, changes] of [
  ['was up', { adminState: 'up' }],
  ['a job had stopped', { stoppedByJob: 7 }],
] as const) {
  test(`an instance that ${what} is started on its new node`, async () => {
    const { calls, run, record } = lab({ changes: { ...changes, secretNames: ['a', 'b'] } });
    await run();
    assert.deepEqual(
      [...calls.slice(0, 4), calls.at(-1)],
      ['free', 'take', MOVED, 'settle', 'start'],
    );
    assert.match(calls[4] ?? '', LOST_SECRETS);
    assert.equal(record().stoppedByJob, null);
  });
}

test('the end of the lease is told at each tenth second', async () => {
  const { calls, run } = lab({ waits: [25_100, 15_101, 15_100, 5_101, 5_100] });
  await run();
  const told = calls.filter((call) => call.includes('may still write'));
  assert.deepEqual(
    told.map((line) => line.split(' ').at(-2)),
    ['26', '16', '6'],
  );
});

test('disks that a paused QEMU process holds are waited for, up to ten minutes', async () => {
  const patient = lab({ looks: [null, IN_USE, IN_USE], clock: [0, 599_999, 599_999] });
  await patient.run();
  assert.deepEqual(patient.calls.slice(0, 2), [
    'warn: a paused QEMU process holds its disks and ends soon (pid 7)',
    'free',
  ]);
  const late = lab({ looks: [null, IN_USE], clock: [0, 600_000] });
  await assert.rejects(late.run(), { code: 'DISK_IN_USE' });
  const missing = lab({ looks: [null, new AppError('DISK_MISSING', 'no folder')] });
  await assert.rejects(missing.run(), { code: 'DISK_MISSING' });
});
