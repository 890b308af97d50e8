import { infoOf } from '../e2e/support/ask-nodes.ts';
import { askSocket } from '../lab/ask-socket.ts';
import type { MortalImageServer } from './mortal-image-server.ts';
import { ONE, type PointOperation, type PointScene, TWO } from './point-scene.ts';

/** An instance without OS definition exports whole disks. */
const BARE = 'bare.example.com';

/** Returns the operations on instances and exports that do not start QEMU. */
export function createPointOperations(
  scene: PointScene,
  server: MortalImageServer,
): readonly PointOperation[] {
  const { lab, must, isThere, create, absent, installed } = scene;
  const exported = async (): Promise<readonly string[]> => {
    const { body } = await askSocket(lab.paths.nodedSocket, '/v1/exports');
    const found = JSON.parse(body) as { name: string; problem: string | null }[];
    return found.map(({ name, problem }) => `${name}: ${problem ?? 'whole'}`);
  };
  const wholeExported = async (): Promise<void> => {
    if (!(await isThere(BARE))) {
      await must(create(BARE));
      await must({ opcode: 'INSTANCE_SET_PARAMS', name: BARE, osType: null });
    }
    if (!(await exported()).includes(`${BARE}: whole`))
      await must({ opcode: 'BACKUP_EXPORT', name: BARE });
  };
  const fine = (): Promise<readonly string[]> => Promise.resolve([]);
  const written = async (isDone: boolean): Promise<readonly string[]> =>
    isDone ? scene.isWritten(ONE) : [];
  const isThereOnce = async (isDone: boolean): Promise<readonly string[]> =>
    isDone && !(await isThere(ONE)) ? ['it is gone'] : [];
  let round = 0;
  return [
    {
      name: 'add without install',
      prepare: () => absent(ONE),
      opcode: () => create(ONE, { install: false }),
      judge: isThereOnce,
    },
    { name: 'add', prepare: () => absent(ONE), opcode: () => create(ONE), judge: written },
    {
      name: 'reinstall',
      prepare: () => installed(ONE),
      opcode: () => ({ opcode: 'INSTANCE_REINSTALL', name: ONE, start: false }),
      judge: written,
      isRepeated: true,
    },
    {
      name: 'modify',
      prepare: () => installed(ONE),
      opcode: () => ({ opcode: 'INSTANCE_SET_PARAMS', name: ONE, tags: [`t${++round}`] }),
      judge: async (isDone) =>
        isDone && (await infoOf(lab, ONE)).tags.join() !== `t${round}` ? ['it is what it was'] : [],
    },
    {
      name: 'rename',
      prepare: async () => {
        await absent(TWO);
        await installed(ONE);
      },
      opcode: () => ({ opcode: 'INSTANCE_RENAME', name: ONE, newName: TWO }),
      judge: async (isDone) =>
        (await isThere(ONE)) === (await isThere(TWO)) || (isDone && !(await isThere(TWO)))
          ? ['it has both names, or none']
          : [],
    },
    {
      name: 'export',
      prepare: async () => {
        await installed(ONE);
        if (!(await exported()).includes(`${ONE}: whole`))
          await must({ opcode: 'BACKUP_EXPORT', name: ONE });
      },
      opcode: () => ({ opcode: 'BACKUP_EXPORT', name: ONE }),
      judge: async () =>
        (await exported()).includes(`${ONE}: whole`) ? [] : [`exports: ${(await exported()).join()}`], // prettier-ignore
    },
    {
      name: 'export remove',
      prepare: async () => {
        if ((await exported()).includes(`${ONE}: whole`)) return;
        await installed(ONE);
        await must({ opcode: 'BACKUP_EXPORT', name: ONE });
      },
      opcode: () => ({ opcode: 'BACKUP_REMOVE', name: ONE }),
      // After an interruption, the export is either complete or gone.
      judge: async (isDone) =>
        (await exported())
          .filter((one) => one.startsWith(ONE) && (isDone || one !== `${ONE}: whole`))
          .map((one) => `an export: ${one}`),
    },
    {
      name: 'import',
      prepare: async () => {
        await absent(TWO);
        if (!(await exported()).includes(`${ONE}: whole`)) {
          await installed(ONE);
          await must({ opcode: 'BACKUP_EXPORT', name: ONE });
        }
      },
      opcode: () => create(TWO, { importFrom: ONE }),
      judge: async (isDone) => (isDone && !(await isThere(TWO)) ? ['it is gone'] : []),
    },
    {
      name: 'export of whole disks',
      prepare: wholeExported,
      opcode: () => ({ opcode: 'BACKUP_EXPORT', name: BARE }),
      judge: async () =>
        (await exported()).includes(`${BARE}: whole`) ? [] : [`exports: ${(await exported()).join()}`], // prettier-ignore
    },
    {
      name: 'import of whole disks',
      prepare: async () => {
        await absent(TWO);
        await wholeExported();
      },
      opcode: () => ({ opcode: 'INSTANCE_CREATE', name: TWO, importFrom: BARE, start: false }),
      judge: async (isDone) => {
        if (await isThere(TWO)) return scene.isWritten(TWO);
        return isDone ? ['it is gone'] : [];
      },
    },
    {
      name: 'image fetch',
      prepare: async () => {
        await absent(TWO);
        await server.start();
      },
      opcode: () => create(TWO, { osImage: server.url(`${++round}.raw`) }),
      cancelAfter: 'fetch-image',
      judge: fine,
    },
    {
      name: 'remove',
      prepare: () => installed(ONE),
      opcode: () => ({ opcode: 'INSTANCE_REMOVE', name: ONE }),
      judge: async (isDone) => (isDone && (await isThere(ONE)) ? ['it is back'] : []),
    },
  ];
}
