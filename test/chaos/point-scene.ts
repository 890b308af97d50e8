import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { InstanceInfo } from '#shared/contract/instance.ts';
import type { Lab } from '../../scripts/demo/lab.ts';
import { infoOf, submit } from '../e2e/support/ask-nodes.ts';
import { askSocket } from '../lab/ask-socket.ts';
import type { KillPoint } from './kill-at-call.ts';

/** What is done by one request, and can be done again and again. */
export interface PointOperation {
  readonly name: string;
  /** Brings about what it needs, whatever the last one left. */
  prepare(): Promise<void>;
  readonly opcode: () => object;
  /** Of the API, which takes it at once: it is no job. */
  readonly path?: string;
  /** What to do when a stage of it has ended, after which it is not looked at any more. */
  readonly cancelAfter?: string;
  /** What is wrong with what it left. @param isDone it was told as done */
  judge(isDone: boolean): Promise<readonly string[]>;
  /** Cut off, it is done again, and has to come through. */
  readonly isRepeated?: true;
  /** At which a daemon is killed, in place of those that are usual. */
  readonly calls?: readonly Pick<KillPoint, 'thread' | 'call'>[];
  /** It takes longer until what was begun is as it has to be. */
  readonly settleMs?: number;
}

/** By the operating system that is installed, at the beginning of its disk. */
export const WRITTEN = 'system';
export const OS = 'quick';
export const ONE = 'one.example.com';
export const TWO = 'two.example.com';
const DISK_BYTES = 16 * 1024 * 1024;

/** What operations need before their points, and how they look at what they left. */
export interface PointScene {
  readonly lab: Lab;
  /** @throws when it fails: nothing hurts the daemon meanwhile */
  readonly must: (opcode: object) => Promise<void>;
  /** The same of what is no job. */
  readonly mustPost: (path: string, body: object) => Promise<void>;
  readonly isThere: (name: string) => Promise<boolean>;
  readonly create: (name: string, more?: object) => object;
  readonly absent: (name: string) => Promise<void>;
  /** Installed, by whatever it takes. */
  readonly installed: (name: string) => Promise<void>;
  /** What an installation was told to have written is there. */
  readonly isWritten: (name: string) => Promise<readonly string[]>;
  /** A list that the API tells. */
  readonly list: (path: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;
}

/**
 * How instances of a scene differ: what is said when one is made, and where their first disk is.
 */
export interface SceneDisks {
  readonly words?: object;
  readonly pathOf?: (instance: InstanceInfo) => string;
}

export function createPointScene(lab: Lab, { words = {}, pathOf }: SceneDisks = {}): PointScene {
  const { nodedSocket, disksDir } = lab.paths;
  const path = (name: string): string => `/v1/instances/${name}`;
  const must = async (opcode: object): Promise<void> => {
    const { error, summary } = await submit(lab, opcode);
    if (error !== null) throw new Error(`${summary} before the point: ${error.message}`);
  };
  const isThere = async (name: string): Promise<boolean> =>
    (await askSocket(nodedSocket, path(name))).status === 200;
  const create = (name: string, more: object = {}): object => ({
    opcode: 'INSTANCE_CREATE', name, osType: OS, disks: [{ sizeBytes: DISK_BYTES }],
    nics: [], start: false, ...words, ...more,
  }); // prettier-ignore
  const absent = async (name: string): Promise<void> => {
    if (await isThere(name)) await must({ opcode: 'INSTANCE_REMOVE', name, shutdownTimeoutS: 0 });
  };
  return {
    ...{ lab, must, isThere, create, absent },
    mustPost: async (to, body) => {
      const answer = await askSocket(nodedSocket, to, { method: 'POST', body });
      if (answer.status >= 300) throw new Error(`${to} before the point: ${answer.body}`);
    },
    installed: async (name) => {
      const { body, status } = await askSocket(nodedSocket, path(name));
      if (status === 200 && body.includes('"installState":"installed"')) return;
      await absent(name);
      await must(create(name));
    },
    isWritten: async (name) => {
      const instance = await infoOf(lab, name);
      const first = pathOf?.(instance) ?? join(disksDir, instance.uuid, 'disk0.raw');
      const disk = await readFile(first).catch(() => Buffer.alloc(0));
      return disk.subarray(0, WRITTEN.length).toString() === WRITTEN
        ? []
        : [`the disk of ${name} is empty`];
    },
    list: async (from) =>
      // The API's own answer, of objects.
      JSON.parse((await askSocket(nodedSocket, from)).body) as Record<string, unknown>[],
  };
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
