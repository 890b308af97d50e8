import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord, InstanceSnapshot } from '#shared/contract/instance.ts';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import { migrateInstanceHandler } from '../../../noded/operations/migrate.ts';
import { moveInstanceHandler } from '../../../noded/operations/move.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { settingsOfStart } from '../../../noded/instances/view/settings-of-run.ts';
import { parseOpcode } from '../support/opcodes.ts';
import { instanceRecord } from '../support/records.ts';

const [HERE, OTHER] = ['node1.example.com', 'node2.example.com'];
const REACHED = { message: 'the other node was asked' };
const SNAPSHOTS = [{ name: 'daily' }] as unknown as InstanceSnapshot[];
const { signal } = new AbortController();

interface World {
  readonly changes?: Partial<InstanceRecord>;
  readonly node?: string;
  /** Nodes of the cluster; null: a single host. */
  readonly names?: readonly string[] | null;
  readonly isRunning?: boolean;
  readonly isOrphan?: boolean;
  readonly halt?: { readonly reason: string };
  /** Folders of snapshots that no record has. */
  readonly forgotten?: readonly string[];
}

function dependenciesOf(world: World): { all: OperationDependencies; calls: string[] } {
  const { changes, names = [HERE, OTHER], isRunning, isOrphan = false, halt = null } = world;
  const calls: string[] = [];
  const call = (name: string) => async (): Promise<void> => void calls.push(name);
  const migration = { describe: async () => ({ qemu: '10.0', board: 'q35' }) };
  const machine = { isRunning: () => isRunning, halt, accelerator: 'tcg', migration };
  const all = {
    instances: {
      findByName: async () => instanceRecord({}, changes),
      update: async () => instanceRecord({}, changes),
    },
    moving: { listLeaving: async () => [], comeBack: call('comeBack') },
    keeper: { get: () => undefined },
    nodes: { names: async () => names ?? [HERE] },
    nodeName: HERE,
    peers: names && { open: async () => Promise.reject(new Error(REACHED.message)) },
    snapshots: { listForgotten: async () => world.forgotten ?? [] },
    disks: {
      requireFiles: () => void calls.push('requireFiles'),
      settle: call('settle'),
      activate: call('activate'),
    },
    runner: {
      isRunning: () => isRunning,
      running: () => (isRunning === undefined ? undefined : { machine, isOrphan }),
      checkDisksUnused: call('checkDisksUnused'),
    },
    lifecycles: { forget: call('forget') },
  } as unknown as OperationDependencies;
  return { all, calls };
}

async function migrate(world: World): Promise<void> {
  const { all } = dependenciesOf({ isRunning: true, ...world });
  const opcode = parseOpcode({
    ...{ opcode: 'INSTANCE_MIGRATE', name: 'web1' },
    ...(world.node !== '' && { node: world.node ?? OTHER }),
  });
  assert.ok(opcode.opcode === 'INSTANCE_MIGRATE');
  await migrateInstanceHandler(all).prepare(opcode, signal);
}

test('a stopped instance is settled, checked and activated before the other node is asked', async () => {
  const { all, calls } = dependenciesOf({});
  const opcode = { opcode: 'INSTANCE_MOVE', name: 'web1', node: OTHER } as const;
  await assert.rejects(moveInstanceHandler(all).prepare(opcode, signal), REACHED);
  assert.deepEqual(calls, ['requireFiles', 'settle', 'checkDisksUnused', 'activate']);
});

type Refusal = readonly [code: string, message: RegExp, hint?: RegExp];
/** Refusals that both share. */
const BOTH: Readonly<Record<string, readonly [World, ...Refusal]>> = {
  'on a single host': [{ names: null }, 'NODE_NOT_FOUND', /no other node/],
  'without a node': [{ node: '' }, 'NODE_NOT_FOUND', /no other node/],
  'to its own node': [{ node: HERE }, 'INSTANCE_STATE', /already on node node1/],
  'to an unknown node': [{ node: 'node3' }, 'NODE_NOT_FOUND', /node3/],
  'of shared disks': [
    { changes: { diskTemplate: 'sharedfile' } },
    ...(['NOT_SUPPORTED', /shared disks, which need no move/] as const),
  ],
  'during an installation': [
    { changes: { installState: 'installing' } },
    ...(['INSTANCE_STATE', /is being installed/, /gnt-job list/] as const),
  ],
  'of snapshots': [
    { changes: { snapshots: SNAPSHOTS } },
    ...(['INSTANCE_STATE', /has snapshots/, /^Remove them first: daily \(/] as const),
  ],
  'of snapshots that no record has': [
    { changes: { snapshots: SNAPSHOTS }, forgotten: ['/srv/snapshot-1'] },
    ...(['INSTANCE_STATE', /has snapshots/, /: daily, snapshot-1 \(/] as const),
  ],
};

const OF_MOVE: typeof BOTH = {
  ...BOTH,
  'while it runs': [
    { isRunning: true },
    ...(['INSTANCE_STATE', /running and cannot be moved/, /gnt-instance migrate/] as const),
  ],
};
for (const [what, [world, code, message, hint]] of Object.entries(OF_MOVE)) {
  test(`a move ${what} is refused`, async () => {
    const { all, calls } = dependenciesOf(world);
    const { node = OTHER } = world;
    const wanted = node === '' ? undefined : node;
    const handler = moveInstanceHandler(all);
    const opcode = { opcode: 'INSTANCE_MOVE', name: 'web1', node: wanted } as const;
    const prepared = handler.prepare(opcode, signal);
    await assert.rejects(prepared, { code, message, ...(hint && { hint }) });
    assert.ok(!calls.includes('activate'));
  });
}

const port = (of: 'disks' | 'nics') =>
  ({ [of]: [{ ...instanceRecord()[of][0], port: 3 }] }) as Partial<InstanceRecord>;
const ran = instanceRecord();
const OF_MIGRATION: typeof BOTH = {
  ...BOTH,
  'of a stopped instance': [
    { isRunning: false },
    ...(['INSTANCE_STATE', /is not running/, /gnt-instance move web1/] as const),
  ],
  'of an orphan': [{ isOrphan: true }, 'INSTANCE_STATE', /is not running/],
  'of a paused guest': [
    { halt: { reason: 'no space' } },
    ...(['INSTANCE_STATE', /is paused: no space/] as const),
  ],
  'with a setting that waits': [
    { changes: { partsOfRun: settingsOfStart({ ...ran, communication: !ran.communication }) } },
    ...(['INSTANCE_STATE', /changes of channel take effect/, /gnt-instance reboot/] as const),
  ],
  'with UEFI': [
    { changes: { hvparams: { ...ran.hvparams, firmware: 'uefi' } } },
    ...(['NOT_SUPPORTED', /has an UEFI firmware and/] as const),
  ],
  'with a cdrom': [
    { changes: { hvparams: { ...ran.hvparams, cdrom_image_path: '/srv/a.iso' } } },
    ...(['NOT_SUPPORTED', /has a cdrom and/] as const),
  ],
  'with a boot environment': [
    { changes: { bootEnv: 'rescue' } },
    ...(['NOT_SUPPORTED', /has a boot environment and/] as const),
  ],
  'with an added disk': [
    { changes: port('disks') },
    ...(['NOT_SUPPORTED', /has NICs or disks that were added/] as const),
  ],
  'with an added NIC': [
    { changes: port('nics') },
    ...(['NOT_SUPPORTED', /has NICs or disks that were added/] as const),
  ],
};
for (const [what, [world, code, message, hint]] of Object.entries(OF_MIGRATION)) {
  test(`a migration ${what} is refused`, async () => {
    await assert.rejects(migrate(world), { code, message, ...(hint && { hint }) });
  });
}

for (const [what, changes] of [
  ['with BIOS', { hvparams: { ...ran.hvparams, firmware: 'bios' } }],
  ['that boots from its disk', { bootEnv: 'local' }],
] as const) {
  test(`a running instance ${what} can be migrated`, async () => {
    await assert.rejects(migrate({ changes: changes }), REACHED);
  });
}

for (const [names, asked] of [
  [[HERE, OTHER], [OTHER]],
  [null, []],
] as const) {
  test(`a cleanup on ${names?.length ?? 1} node(s) asks the others: ${asked.join() || 'none'}`, async () => {
    const { all } = dependenciesOf({ names });
    const opcode = parseOpcode({ opcode: 'INSTANCE_MIGRATE', name: 'web1', cleanup: true });
    assert.ok(opcode.opcode === 'INSTANCE_MIGRATE');
    const execute = await migrateInstanceHandler(all).prepare(opcode, signal);
    const lines: string[] = [];
    const report = { log: (line: string) => void lines.push(line) };
    const { name, uuid } = instanceRecord();
    assert.deepEqual(await execute({ signal, report } as unknown as JobContext), {
      ...{ name, uuid, node: HERE, isRunning: false },
    });
    const refused = lines.filter((line) => line.includes('does not confirm'));
    assert.deepEqual(
      refused.map((line) => line.split(' ')[0]),
      asked,
    );
  });
}

test('a cleanup during an installation is refused', async () => {
  const { all } = dependenciesOf({ changes: { installState: 'installing' } });
  const opcode = parseOpcode({ opcode: 'INSTANCE_MIGRATE', name: 'web1', cleanup: true });
  assert.ok(opcode.opcode === 'INSTANCE_MIGRATE');
  await assert.rejects(migrateInstanceHandler(all).prepare(opcode, signal), {
    ...{ code: 'INSTANCE_STATE', message: /is being installed/ },
  });
});
