import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { InstanceInfo } from '#shared/contract/instance.ts';
import type { Lab } from '../../scripts/demo/lab.ts';
import { infoOf, submit } from '../e2e/support/ask-nodes.ts';
import { askSocket } from '../lab/ask-socket.ts';
import type { KillPoint } from './kill-at-call.ts';

/** A repeatable operation of one request. */
export interface PointOperation {
  readonly name: string;
  /** Brings about the operation's preconditions from any state. */
  prepare(): Promise<void>;
  readonly opcode: () => object;
  /** Path in the API of an operation that is not a job. */
  readonly path?: string;
  /** Stage after which the test cancels the job, without checking its result. */
  readonly cancelAfter?: string;
  /**
   * Returns problems in the resulting state. @param isDone the operation was reported as successful
   */
  judge(isDone: boolean): Promise<readonly string[]>;
  /** After an interruption the operation must succeed when repeated. */
  readonly isRepeated?: true;
  /** Replaces the default calls at which the daemon is killed. */
  readonly calls?: readonly Pick<KillPoint, 'thread' | 'call'>[];
  /** Time limit in milliseconds for settling, longer than the default. */
  readonly settleMs?: number;
}

/** Written by the OS definition at the start of the disk. */
export const WRITTEN = 'system';
export const OS = 'quick';
export const ONE = 'one.example.com';
export const TWO = 'two.example.com';
const DISK_BYTES = 16 * 1024 * 1024;

/** Helpers to prepare and check operations. */
export interface PointScene {
  readonly lab: Lab;
  /** Runs a job without faults. @throws when it fails */
  readonly must: (opcode: object) => Promise<void>;
  /** Sends a request that is not a job, without faults. */
  readonly mustPost: (path: string, body: object) => Promise<void>;
  readonly isThere: (name: string) => Promise<boolean>;
  readonly create: (name: string, more?: object) => object;
  readonly absent: (name: string) => Promise<void>;
  /** Ensures that the instance exists and is installed. */
  readonly installed: (name: string) => Promise<void>;
  /** Checks that the disk has the installed content. */
  readonly isWritten: (name: string) => Promise<readonly string[]>;
  /** Returns a list of the API. */
  readonly list: (path: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;
}

/**
 * Differences of a scene's instances: additional fields of the opcode, and the path of the first
 * disk.
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
      // The API returns a list of objects.
      JSON.parse((await askSocket(nodedSocket, from)).body) as Record<string, unknown>[],
  };
}

/**
 * Repeats the check until it finds nothing or the time is over, because clean-up may take a moment.
 */
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
