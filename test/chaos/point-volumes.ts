import { mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { type InstanceInfo, instanceInfo } from '#shared/contract/instance.ts';
import { run } from '#shared/process/run.ts';
import { MIB } from '#shared/units/bytes.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { ask, infoOf, submit } from '../e2e/support/ask-nodes.ts';
import { createLoopLvm, type LoopLvm } from '../noded/storage/volumes/loop-lvm.ts';
import {
  findOwn,
  volumeName,
  volumePath,
} from '../../noded/storage/drivers/volumes/volume-names.ts';
import type { MachineScene } from './point-machines.ts';
import { createPointOperations } from './point-operations.ts';
import { createPointScene, ONE, type PointOperation, type PointScene } from './point-scene.ts';
import type { MortalImageServer } from './mortal-image-server.ts';

/** Comes before the system's folders in PATH. */
const FIRST_OF_PATH = '/usr/local/sbin';
const LVM = '/usr/sbin/lvm';
const GROUP_BYTES = 160 * MIB;
const OLD = 'OLDTENANT';
const EXTENT = 4 * MIB;
const segments = z.object({
  report: z.tuple([
    z.object({
      pvseg: z.array(
        z.object({ pe_start: z.coerce.number(), pvseg_start: z.coerce.number(), pvseg_size: z.coerce.number(), segtype: z.string() }),
      ),
    }),
  ]),
}); // prettier-ignore

interface Group {
  readonly name: string;
  readonly device: string;
  readonly lvm: LoopLvm;
}

/**
 * Creates a node whose disks are LVM volumes, without device mapper. The caller must have its own
 * mount namespace, because this mounts another `lvm`.
 */
export async function createVolumeScene(server: MortalImageServer): Promise<MachineScene> {
  await using undo = new AsyncDisposableStack();
  const lab = await createLab('gnt-pl');
  undo.defer(() => lab.dispose());
  const group = await makeGroup(undo);
  const pathOf = ({ disks }: InstanceInfo, index = 0): string =>
    volumePath(group.name, volumeName(disks[index]?.uuid ?? '', { kind: 'disk' }));
  const words = { diskTemplate: 'plain', disks: [{ sizeBytes: 2 * EXTENT }] };
  const scene = createPointScene(lab, { words, pathOf });
  let isSet = false;
  const prepared = (operation: PointOperation): PointOperation => ({
    ...operation,
    prepare: async () => {
      if (!isSet) await setGroup(lab, group.name);
      isSet = true;
      await operation.prepare();
      await soil(group);
    },
    judge: async (isDone) => [
      ...(await operation.judge(isDone)),
      ...(await judgeVolumes(lab, group)),
    ],
  });
  const operations = [...createPointOperations(scene, server), ...ofDisks(scene, pathOf)];
  const all = undo.move();
  return {
    lab,
    operations: operations.map(prepared),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

async function makeGroup(undo: AsyncDisposableStack): Promise<Group> {
  const folder = await mkdtemp('/tmp/gnt-group-');
  undo.defer(() => rm(folder, { recursive: true }));
  const image = join(folder, 'image');
  {
    await using file = await open(image, 'w');
    await file.truncate(GROUP_BYTES);
  }
  const device = (await run('losetup', ['--find', '--show', image])).stdout.trim();
  undo.defer(async () => void (await run('losetup', ['--detach', device])));
  const name = `gntpoints${process.pid}`;
  undo.defer(() => rm(`/dev/${name}`, { recursive: true, force: true }));
  const lvm = createLoopLvm(name, device, LVM);
  await lvm.command('vgcreate', '--yes', name, device);
  undo.defer(async () => {
    for (const volume of await lvm.listVolumes()) await lvm.remove(volume);
  });
  await mkdir(FIRST_OF_PATH, { recursive: true });
  await run('mount', ['-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', FIRST_OF_PATH]);
  const program = join(import.meta.dirname, 'lvm-program.ts');
  // LVM also lets only one command at a time change a group.
  const words = `exec flock ${folder}/lock ${process.execPath} ${program} ${LVM} ${name} ${device} "$@"`;
  await writeFile(join(FIRST_OF_PATH, 'lvm'), `#!/bin/sh\n${words}\n`, { mode: 0o755 });
  return { name, device, lvm };
}

async function setGroup(lab: Lab, vgName: string): Promise<void> {
  const { error } = await submit(lab, { opcode: 'CLUSTER_SET_PARAMS', vgName });
  if (error !== null) throw new Error(error.message);
}

/** Fills the free extents with a former tenant's data. */
async function soil({ lvm, device }: Group): Promise<void> {
  const fields = ['-o', 'pe_start,pvseg_start,pvseg_size,segtype'];
  const how = ['--segments', '--reportformat', 'json', '--units', 'b', '--nosuffix'];
  const [{ pvseg }] = segments.parse(JSON.parse(await lvm.command('pvs', ...how, ...fields, device))).report; // prettier-ignore
  await using file = await open(device, 'r+');
  for (const { pe_start, pvseg_start, pvseg_size, segtype } of pvseg)
    if (segtype === 'free')
      await file.write(Buffer.alloc(pvseg_size * EXTENT, `${OLD}\n`), 0, null, pe_start + pvseg_start * EXTENT); // prettier-ignore
  await file.sync();
}

/**
 * Checks that each volume is a recorded disk, active, large enough and free of foreign data, and
 * that each disk has a volume.
 */
async function judgeVolumes(lab: Lab, { name: group, lvm }: Group): Promise<readonly string[]> {
  const instances = await ask(lab, '/v1/instances', instanceInfo.array());
  const found = findOwn(await lvm.listVolumes());
  const wrong: string[] = [];
  for (const { name, disk, state, sizeBytes, isActive, dirtyFromBytes } of found) {
    const owner = instances.find(({ disks }) => disks.some(({ uuid }) => uuid === disk));
    const wanted = owner?.disks.find(({ uuid }) => uuid === disk)?.sizeBytes ?? 0;
    if (owner === undefined) wrong.push(`volume of nobody: ${name}`);
    else if (state.kind !== 'disk') wrong.push(`volume ${name} of ${owner.name}`);
    // A larger volume is fine: the next attempt sets the record.
    if (sizeBytes < wanted) wrong.push(`volume ${name} has ${sizeBytes} bytes of ${wanted}`);
    if (dirtyFromBytes !== null) wrong.push(`volume ${name} is not clean`);
    if (!isActive) wrong.push(`volume ${name} is not active`);
    else if ((await readFile(volumePath(group, name))).includes(OLD))
      wrong.push(`volume ${name} has what another one wrote`);
  }
  for (const { name, disks, installState } of instances)
    for (const { uuid } of disks)
      if (installState === 'installed' && !found.some(({ disk }) => disk === uuid))
        wrong.push(`${name} is installed, and has no volume ${uuid}`);
  return wrong;
}

function ofDisks(
  { lab, must, absent, installed, isWritten }: PointScene,
  pathOf: (instance: InstanceInfo, index?: number) => string,
): readonly PointOperation[] {
  const info = (): Promise<InstanceInfo> => infoOf(lab, ONE);
  const modify = (change: object): object => ({
    ...{ opcode: 'INSTANCE_SET_PARAMS', name: ONE },
    disks: [change],
  });
  const withDisks = async (count: number): Promise<void> => {
    await installed(ONE);
    const { disks } = await info();
    if (disks.length === count && disks[0]?.sizeBytes === 2 * EXTENT) return;
    await absent(ONE);
    await installed(ONE);
    for (let have = 1; have < count; have += 1)
      await must(modify({ action: 'add', disk: { sizeBytes: EXTENT } }));
  };
  const hasDisks = async (isDone: boolean, count: number): Promise<readonly string[]> => [
    ...(isDone && (await info()).disks.length !== count ? ['it is what it was'] : []),
    ...(await isWritten(ONE)),
  ];
  return [
    {
      name: 'grow',
      prepare: () => withDisks(1),
      opcode: () => ({
        ...{ opcode: 'INSTANCE_GROW_DISK', name: ONE, disk: 0 },
        ...{ amountBytes: 4 * EXTENT, absolute: true },
      }),
      judge: async (isDone) => {
        const { disks } = await info();
        const isGrown = disks[0]?.sizeBytes === 4 * EXTENT;
        return [...(isDone && !isGrown ? ['it is what it was'] : []), ...(await isWritten(ONE))];
      },
      isRepeated: true,
    },
    {
      name: 'add a disk',
      prepare: () => withDisks(1),
      opcode: () => modify({ action: 'add', disk: { sizeBytes: EXTENT } }),
      judge: (isDone) => hasDisks(isDone, 2),
    },
    {
      name: 'remove a disk',
      prepare: async () => {
        await withDisks(3);
        await writeFile(pathOf(await info(), 2), 'third', { flag: 'r+' });
      },
      // The following disks move up.
      opcode: () => modify({ action: 'remove', which: 1 }),
      judge: async (isDone) => {
        const now = await info();
        const last = await readFile(pathOf(now, now.disks.length - 1));
        const isThird = last.subarray(0, 5).toString() === 'third';
        return [...(await hasDisks(isDone, 2)), ...(isThird ? [] : ['its last disk is empty'])];
      },
    },
  ];
}
