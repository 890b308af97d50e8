import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { infoOf } from '../e2e/support/ask-nodes.ts';
import { ONE, type PointOperation, type PointScene, TWO } from './point-scene.ts';

const MIB = 1024 * 1024;

/** Returns the operations on disks of stopped instances. */
export function createDiskOperations(scene: PointScene): readonly PointOperation[] {
  const { lab, must, absent, installed, isThere } = scene;
  const folderOf = async (name: string): Promise<string> =>
    join(lab.paths.disksDir, (await infoOf(lab, name)).uuid);
  const disksOf = async (name: string): Promise<number> => (await infoOf(lab, name)).disks.length;
  let asked = 0;
  return [
    {
      name: 'grow',
      prepare: async () => {
        await installed(ONE);
        asked = ((await infoOf(lab, ONE)).disks[0]?.sizeBytes ?? 0) + MIB;
        if (asked < 64 * MIB) return;
        await absent(ONE);
        await installed(ONE);
        asked = 17 * MIB;
      },
      opcode: () => ({
        ...{ opcode: 'INSTANCE_GROW_DISK', name: ONE, disk: 0 },
        ...{ amountBytes: asked, absolute: true },
      }),
      judge: async (isDone) => {
        const { disks } = await infoOf(lab, ONE);
        const { size } = await stat(join(await folderOf(ONE), 'disk0.raw'));
        const sizeBytes = disks[0]?.sizeBytes ?? 0;
        return [
          ...(isDone && (sizeBytes !== asked || size !== asked) ? ['it is what it was'] : []),
          // A larger file is fine: the next attempt sets the record.
          ...(size < sizeBytes ? [`its file has ${size} bytes of ${sizeBytes}`] : []),
          ...(await scene.isWritten(ONE)),
        ];
      },
    },
    {
      name: 'add a disk',
      prepare: async () => {
        await installed(ONE);
        if ((await disksOf(ONE)) > 3) {
          await absent(ONE);
          await installed(ONE);
        }
        asked = (await disksOf(ONE)) + 1;
      },
      opcode: () => ({
        ...{ opcode: 'INSTANCE_SET_PARAMS', name: ONE },
        disks: [{ action: 'add', disk: { sizeBytes: MIB } }],
      }),
      judge: async (isDone) => {
        const count = await disksOf(ONE);
        return [
          ...(isDone && count !== asked ? [`it has ${count} disks`] : []),
          ...(await scene.isWritten(ONE)),
        ];
      },
    },
    {
      name: 'remove a disk',
      prepare: async () => {
        await installed(ONE);
        for (let count = await disksOf(ONE); count < 3; count += 1)
          await must({
            ...{ opcode: 'INSTANCE_SET_PARAMS', name: ONE },
            disks: [{ action: 'add', disk: { sizeBytes: (count + 1) * MIB } }],
          });
      },
      // The following disks move up.
      opcode: () => ({
        opcode: 'INSTANCE_SET_PARAMS',
        name: ONE,
        disks: [{ action: 'remove', which: 1 }],
      }),
      judge: async (isDone) => {
        const { disks } = await infoOf(lab, ONE);
        const folder = await folderOf(ONE);
        const files = (await readdir(folder)).filter((name) => name.startsWith('disk')).sort();
        const wanted = disks.map((_, index) => `disk${index}.raw`);
        const wrong = isDone && disks.length > 2 ? [`it has ${disks.length} disks`] : [];
        if (files.join() !== wanted.join()) return [...wrong, `its files are ${files.join()}`];
        for (const [index, { sizeBytes }] of disks.entries()) {
          const { size } = await stat(join(folder, `disk${index}.raw`));
          if (size !== sizeBytes) wrong.push(`disk ${index} has ${size} bytes of ${sizeBytes}`);
        }
        return [...wrong, ...(await scene.isWritten(ONE))];
      },
    },
    {
      name: 'copy',
      prepare: async () => {
        await installed(ONE);
        await absent(TWO);
      },
      opcode: () => ({ opcode: 'INSTANCE_COPY', name: ONE, newName: TWO }),
      judge: async (isDone) => {
        if (await isThere(TWO)) return scene.isWritten(TWO);
        return isDone ? ['it is gone'] : [];
      },
    },
  ];
}

/** Returns the operations on snapshots, which need a file system with reflinks. */
export function createSnapshotOperations(scene: PointScene): readonly PointOperation[] {
  const { lab, must, installed } = scene;
  const names = async (): Promise<readonly string[]> =>
    (await infoOf(lab, ONE)).snapshots.map(({ name }) => name);
  const bring = async (wanted: boolean): Promise<void> => {
    await installed(ONE);
    if ((await names()).includes('now') === wanted) return;
    const opcode = wanted ? 'INSTANCE_SNAPSHOT' : 'INSTANCE_REMOVE_SNAPSHOT';
    await must({ opcode, name: ONE, snapshot: 'now' });
  };
  const judge = async (isDone: boolean, wanted: boolean): Promise<readonly string[]> => {
    const isThere = (await names()).includes('now');
    return [
      ...(isDone && isThere !== wanted ? [`the snapshot is ${wanted ? 'gone' : 'back'}`] : []),
      ...(await judgeSnapshots(scene)),
    ];
  };
  return [
    {
      name: 'snapshot',
      prepare: () => bring(false),
      opcode: () => ({ opcode: 'INSTANCE_SNAPSHOT', name: ONE, snapshot: 'now' }),
      judge: (isDone) => judge(isDone, true),
    },
    {
      name: 'snapshot revert',
      prepare: () => bring(true),
      opcode: () => ({ opcode: 'INSTANCE_RESTORE', name: ONE, snapshot: 'now' }),
      judge: (isDone) => judge(isDone, true),
      isRepeated: true,
    },
    {
      name: 'snapshot remove',
      prepare: () => bring(true),
      opcode: () => ({ opcode: 'INSTANCE_REMOVE_SNAPSHOT', name: ONE, snapshot: 'now' }),
      judge: (isDone) => judge(isDone, false),
    },
  ];
}

/** Checks that each recorded snapshot has its disks, and that no others exist. */
export async function judgeSnapshots({ lab, isWritten }: PointScene): Promise<readonly string[]> {
  const { uuid, snapshots, disks } = await infoOf(lab, ONE);
  const folder = join(lab.paths.disksDir, uuid);
  const wanted = snapshots.map((one) => `snapshot-${one.uuid}`).sort();
  const found = (await readdir(folder)).filter((name) => name.startsWith('snapshot')).sort();
  if (wanted.join() !== found.join())
    return [`snapshots are ${found.join() || 'none'}, on record ${wanted.join() || 'none'}`];
  const wrong: string[] = [];
  for (const name of found) {
    const files = await readdir(join(folder, name));
    if (files.length !== disks.length) wrong.push(`${name} has ${files.join() || 'no disks'}`);
  }
  return [...wrong, ...(await isWritten(ONE))];
}
