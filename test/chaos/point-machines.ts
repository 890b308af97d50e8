import { chmod, mkdir, mkdtemp, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { infoOf } from '../e2e/support/ask-nodes.ts';
import { callsOf, type KillPoint } from './kill-at-call.ts';
import { createSnapshotOperations, judgeSnapshots } from './point-disks.ts';
import { createNatOperations } from './point-networks.ts';
import { createPointScene, ONE, type PointOperation, type PointScene } from './point-scene.ts';

export interface MachineScene extends AsyncDisposable {
  /** Lab of a node that has not started yet. */
  readonly lab: Lab;
  readonly operations: readonly PointOperation[];
}

const MIB = 1024 * 1024;
/**
 * Calls that talk to QEMU, pass descriptors, create devices, or clone blocks by ioctl. Of a commit
 * only the sync is a point here: the operations without QEMU cover its other calls.
 */
const CALLS: readonly Pick<KillPoint, 'thread' | 'call'>[] = [
  ...callsOf('loop', 'fsync', 'write', 'writev', 'clone', 'sendmsg', 'ioctl', 'kill'),
  ...callsOf('files', 'fsync', 'mkdir', 'rename', 'unlink', 'rmdir', 'ftruncate', 'ioctl', 'link'),
];
/** The next daemon restarts an instance that only an interrupted job stopped. */
const SETTLE_MS = 60_000;

/** Creates a node whose disks are on a file system with reflinks. */
export async function createMachineScene(): Promise<MachineScene> {
  await using undo = new AsyncDisposableStack();
  const lab = await createLab('gnt-pm');
  // dnsmasq runs as its own user and opens its files by path.
  await chmod(lab.paths.root, 0o755);
  const other = await mkdtemp('/tmp/gnt-btrfs-');
  undo.defer(() => rm(other, { recursive: true }));
  const image = join(other, 'image');
  await writeFile(image, '');
  await truncate(image, 1024 * MIB);
  await run('mkfs.btrfs', ['-q', image]);
  await mkdir(lab.paths.disksDir, { recursive: true });
  await run('mount', ['-o', 'loop', image, lab.paths.disksDir]);
  await run('chmod', ['0700', lab.paths.disksDir]);
  undo.defer(async () => {
    await lab.stopNode();
    for (const { pid } of await lab.processes()) process.kill(pid, 'SIGKILL');
    await run('umount', ['--lazy', lab.paths.disksDir]);
    await lab.dispose();
  });
  const scene = createPointScene(lab);
  const operations = [
    ...createSnapshotOperations(scene),
    ...createNatOperations(scene),
    ...ofMachines(scene),
  ].map((operation) => ({ ...operation, calls: CALLS, settleMs: SETTLE_MS }));
  const all = undo.move();
  return { lab, operations, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/**
 * Returns the operations on an instance with a channel, whose guest is firmware without a boot
 * disk.
 */
function ofMachines(scene: PointScene): readonly PointOperation[] {
  const { lab, must } = scene;
  const info = () => infoOf(lab, ONE);
  let pid = 0;
  /** Brings the instance to the wanted state, with its first disk and without NICs. */
  const runs = async (wanted: boolean): Promise<void> => {
    await ofChannel(scene);
    const { running, disks, nics } = await info();
    const isPlain = disks.length === 1 && nics.length === 0;
    if (running !== null && (!wanted || !isPlain)) await stopped();
    await plain();
    if (wanted && (running === null || !isPlain))
      await must({ opcode: 'INSTANCE_STARTUP', name: ONE });
    pid = (await info()).running?.pid ?? 0;
  };
  const stopped = (): Promise<void> =>
    must({ opcode: 'INSTANCE_SHUTDOWN', name: ONE, timeoutS: 0 });
  const plain = async (): Promise<void> => {
    for (let { disks, nics } = await info(); disks.length > 1 || nics.length > 0;) {
      const last = [{ action: 'remove', which: -1 }];
      const change = disks.length > 1 ? { disks: last } : { nics: last };
      await must({ opcode: 'INSTANCE_SET_PARAMS', name: ONE, ...change });
      ({ disks, nics } = await info());
    }
  };
  /** Checks that the same guest still runs. */
  const same = async (): Promise<readonly string[]> => {
    const { running } = await info();
    if (running === null) return ['its guest ended'];
    if (running.pid !== pid) return ['its guest is another one'];
    return running.halt == null ? [] : [`its guest stands still: ${running.halt.reason}`];
  };
  const isUp = async (isDone: boolean, wanted: boolean): Promise<readonly string[]> =>
    isDone && ((await info()).running !== null) !== wanted ? ['it is what it was'] : [];
  const partsOf = async (kind: 'disks' | 'nics'): Promise<number> => (await info())[kind].length;
  const power = (opcode: string, more: object = {}): (() => object) =>
    () => ({ opcode, name: ONE, ...more }); // prettier-ignore
  const again = async (isDone: boolean): Promise<readonly string[]> => {
    const { running } = await info();
    if (running === null) return ['it is down'];
    return isDone && running.pid === pid ? ['it is the same machine'] : [];
  };
  const plug = (
    name: string,
    kind: 'disks' | 'nics',
    change: object,
    wanted: number,
  ): PointOperation => ({
    name,
    prepare: async () => {
      await runs(true);
      const isThere = wanted === (kind === 'disks' ? 1 : 0);
      const part = kind === 'disks' ? { disk: { sizeBytes: MIB } } : { nic: { mode: 'user' } };
      if (isThere)
        await must({
          ...{ opcode: 'INSTANCE_SET_PARAMS', name: ONE },
          [kind]: [{ action: 'add', ...part }],
        });
    },
    opcode: () => ({ opcode: 'INSTANCE_SET_PARAMS', name: ONE, [kind]: [change] }),
    judge: async (isDone) => [
      ...(await same()),
      ...(isDone && (await partsOf(kind)) !== wanted ? ['it is what it was'] : []),
    ],
  });
  return [
    {
      name: 'startup',
      prepare: () => runs(false),
      opcode: power('INSTANCE_STARTUP'),
      judge: (isDone) => isUp(isDone, true),
      isRepeated: true,
    },
    {
      name: 'shutdown',
      prepare: () => runs(true),
      opcode: power('INSTANCE_SHUTDOWN', { timeoutS: 0 }),
      judge: (isDone) => isUp(isDone, false),
      isRepeated: true,
    },
    {
      name: 'reboot',
      prepare: () => runs(true),
      opcode: power('INSTANCE_REBOOT', { timeoutS: 0 }),
      judge: again,
    },
    {
      name: 'hard reboot',
      prepare: () => runs(true),
      opcode: power('INSTANCE_REBOOT', { kind: 'hard' }),
      judge: same,
    },
    {
      name: 'grow of a running one',
      prepare: () => runs(true),
      opcode: () => ({ opcode: 'INSTANCE_GROW_DISK', name: ONE, disk: 0, amountBytes: MIB }),
      judge: async () => {
        const { uuid, disks } = await info();
        const { size } = await stat(join(lab.paths.disksDir, uuid, 'disk0.raw'));
        const [{ sizeBytes } = { sizeBytes: 0 }] = disks;
        return [
          ...(size < sizeBytes ? [`its file has ${size} bytes of ${sizeBytes}`] : []),
          ...(await same()),
        ];
      },
    },
    plug('plug a disk', 'disks', { action: 'add', disk: { sizeBytes: MIB } }, 2),
    plug('unplug a disk', 'disks', { action: 'remove', which: -1 }, 1),
    plug('plug a NIC', 'nics', { action: 'add', nic: { mode: 'user' } }, 1),
    plug('unplug a NIC', 'nics', { action: 'remove', which: -1 }, 0),
    {
      name: 'snapshot of a running one',
      prepare: async () => {
        await runs(true);
        for (const { name } of (await info()).snapshots)
          await must({ opcode: 'INSTANCE_REMOVE_SNAPSHOT', name: ONE, snapshot: name });
      },
      opcode: power('INSTANCE_SNAPSHOT', { snapshot: 'now' }),
      judge: async () => [...(await same()), ...(await judgeSnapshots(scene))],
    },
    {
      name: 'adopt',
      prepare: async () => {
        if ((await scene.list('/v1/orphans')).length > 0) return;
        await runs(true);
        const { uuid } = await info();
        await lab.stopNode();
        forget(lab, uuid);
        await lab.startNode();
      },
      opcode: power('INSTANCE_ADOPT'),
      judge: async (isDone) => {
        const orphans = (await scene.list('/v1/orphans')).map((one) => one['pid']);
        if (orphans.length === 0) return same();
        return isDone || !orphans.includes(pid) ? [`orphans: ${orphans.join()}`] : [];
      },
    },
  ];
}

/** Creates an instance with a channel and memory for firmware only. */
async function ofChannel({ lab, must, absent, create }: PointScene): Promise<void> {
  const found = await infoOf(lab, ONE).catch(() => null);
  if (found?.communication === true && found.installState === 'installed') return;
  await absent(ONE);
  const machine = { beparams: { memoryMiB: 32 }, hvparams: { accel: 'tcg' } };
  await must(create(ONE, { communication: true, ...machine }));
}

/** Deletes the instance's record, like a store that lost its last commits. */
function forget({ paths }: Lab, uuid: string): void {
  const store = new DatabaseSync(paths.storeFile);
  store.prepare("DELETE FROM records WHERE collection = 'instances' AND id = ?").run(uuid);
  store
    .prepare("DELETE FROM records WHERE collection LIKE 'claim-%' AND value = ?")
    .run(JSON.stringify(uuid));
  store.close();
}
