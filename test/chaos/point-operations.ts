import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lab } from '../../scripts/demo/lab.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { infoOf, submit } from '../e2e/support/ask-nodes.ts';
import type { MortalImageServer } from './mortal-image-server.ts';

/** One that needs no virtual machine, and can be done again and again. */
export interface PointOperation {
  readonly name: string;
  /** Brings about what it needs, whatever the last one left. */
  prepare(): Promise<void>;
  readonly opcode: () => object;
  /** What to do when a stage of it has ended, after which it is not looked at any more. */
  readonly cancelAfter?: string;
  /** What is wrong with what it left. @param isDone it was told as done */
  judge(isDone: boolean): Promise<readonly string[]>;
  /** Cut off, it is done again, and has to come through. */
  readonly isRepeated?: true;
}

/** By the operating system that is installed, at the beginning of its disk. */
export const WRITTEN = 'system';
const OS = 'quick';
const ONE = 'one.example.com';
const TWO = 'two.example.com';
/** Without an OS definition: its disks are exported as they are. */
const BARE = 'bare.example.com';

export function createPointOperations(
  lab: Lab,
  server: MortalImageServer,
): readonly PointOperation[] {
  const path = (name: string): string => `/v1/instances/${name}`;
  const isThere = async (name: string): Promise<boolean> =>
    (await askSocket(lab.paths.nodedSocket, path(name))).status === 200;
  const must = async (opcode: object): Promise<void> => {
    const { error, summary } = await submit(lab, opcode);
    if (error !== null) throw new Error(`${summary} before the point: ${error.message}`);
  };
  const create = (name: string, more: object = {}): object => ({
    opcode: 'INSTANCE_CREATE', name, osType: OS, disks: [{ sizeBytes: 16 * 1024 * 1024 }],
    nics: [], start: false, ...more,
  }); // prettier-ignore
  const absent = async (name: string): Promise<void> => {
    if (await isThere(name)) await must({ opcode: 'INSTANCE_REMOVE', name });
  };
  const installed = async (name: string): Promise<void> => {
    const { body, status } = await askSocket(lab.paths.nodedSocket, path(name));
    if (status === 200 && body.includes('"installState":"installed"')) return;
    await absent(name);
    await must(create(name));
  };
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
  /** What an installation was told to have written is there. */
  const written = async (isDone: boolean): Promise<readonly string[]> => {
    if (!isDone) return [];
    const { uuid } = await infoOf(lab, ONE);
    const disk = await readFile(join(lab.paths.disksDir, uuid, 'disk0.raw')).catch(() =>
      Buffer.alloc(0),
    );
    return disk.subarray(0, WRITTEN.length).toString() === WRITTEN ? [] : ['its disk is empty'];
  };
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
      // Where it was cut off there is the whole of it, or nothing.
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
        if (!(await isThere(TWO))) return isDone ? ['it is gone'] : [];
        const { uuid } = await infoOf(lab, TWO);
        const disk = await readFile(join(lab.paths.disksDir, uuid, 'disk0.raw'));
        return disk.subarray(0, WRITTEN.length).toString() === WRITTEN ? [] : ['its disk is empty'];
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

/** Until it holds, or the time is over: what is being cleaned up may take a moment. */
export async function settled(
  find: () => Promise<readonly string[]>,
  limitMs: number,
): Promise<readonly string[]> {
  const deadlineMs = performance.now() + limitMs;
  for (;;) {
    const found = await find();
    if (found.length === 0 || performance.now() > deadlineMs) return found;
    await sleep(100);
  }
}
