import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Redis } from 'ioredis';
import { isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { loadClusterKeys } from '#shared/store/cluster-keys.ts';
import { openSealedRedis } from '#shared/cluster/cluster-store.ts';
import { ringOf } from '#shared/store/sealed-store.ts';
import { readClusterKey } from '#shared/store/store-choice.ts';
import { issueJoinToken } from '../../noded/cluster/membership/join-tokens.ts';
import type { Lab } from '../../scripts/demo/lab.ts';
import { infoOf, jobsOf } from '../e2e/support/ask-nodes.ts';
import { askSocket } from '../lab/ask-socket.ts';
import type { RedisServer } from '../noded/support/redis-server.ts';
import { findRemains } from './find-remains.ts';
import { findViolations } from './find-violations.ts';
import { armTrap, callsOf } from './kill-at-call.ts';
import { runUntilCall, startUntilCall, type Program } from './kill-program.ts';
import { settled } from './point-scene.ts';
import type { ProgramOperation } from './program-points.ts';

/** The store and nodes of a cluster of two, and functions to recreate it. */
export interface ClusterScene {
  readonly redis: RedisServer;
  readonly client: Redis;
  readonly one: Lab;
  readonly two: Lab;
  /** Creates a new cluster whose first node has not started yet. */
  readonly made: () => Promise<void>;
  readonly forget: (lab: Lab) => Promise<void>;
  /** Starts the only node of a cluster and checks it. */
  readonly aloneAfterStart: (lab: Lab) => Promise<string[]>;
}

const urlOf = (redis: RedisServer): string => `unix:${redis.socket}`;

/**
 * Joins with a single-use token. When the interrupted attempt has used it up, a new token must
 * work.
 */
export function joinByToken(scene: ClusterScene): ProgramOperation {
  const { one, two, made, forget, aloneAfterStart } = scene;
  const file = join(two.paths.root, 'token');
  const issue = async (): Promise<void> => {
    const common = { keys: await loadClusterKeys(one.paths) };
    const membership = { requireMember: () => undefined };
    const { token } = await issueJoinToken(600, { common, paths: one.paths, membership });
    await writeFile(file, token, { mode: 0o600 });
  };
  const args = ['join', `@${file}`];
  return {
    name: 'cluster join by a token',
    calls: callsOf('loop', 'fsync', 'rename', 'link', 'unlink', 'mkdir', 'writev'),
    strike: async (point) => {
      await forget(two);
      await made();
      await issue();
      const program: Program = {
        ...{ folder: 'cluster-cli', name: 'gnt-cluster', root: two.paths.root, args },
      };
      const { isHurt } = await runUntilCall(program, point);
      if (!isHurt) return { isHurt, wrong: [] };
      const again = await two.run('gnt-cluster', args);
      if (again.stderr.includes('TOKEN_USED')) {
        await issue();
        const anew = await two.run('gnt-cluster', args);
        if (anew.status !== 0) return { isHurt, wrong: [`repeated: ${anew.stderr}`] };
      } else if (again.status !== 0 && !again.stderr.includes('start gnt-noded'))
        return { isHurt, wrong: [`repeated: ${again.stderr}`] };
      return { isHurt, wrong: await aloneAfterStart(two) };
    },
  };
}

const SETTLE_MS = 30_000;

/** Tells whether the key opens the store; false until a renewal is complete. */
async function opens(url: string, key: Uint8Array): Promise<boolean> {
  try {
    const { store, cluster } = await openSealedRedis(url, () => ringOf(key), silentLogger);
    await store.close();
    return cluster !== undefined;
  } catch (error) {
    if (isAppError(error, 'STORE_KEY')) return false;
    throw error;
  }
}

/** Kills the node during a key renewal. The renewal must continue by itself and leave one key. */
export function keyRenewal({ redis, client, one, made }: ClusterScene): ProgramOperation {
  const { nodedSocket, stateDir, clusterKeyFile } = one.paths;
  let isMade = false;
  const left = async (): Promise<readonly string[]> => {
    const names = await readdir(stateDir);
    const key = await readClusterKey(clusterKeyFile);
    if (!key) return ['there is no key'];
    const isOpened = await opens(urlOf(redis), key);
    return [
      ...((await client.hlen('{gnt}:c:renewals')) > 0 ? ['a renewal'] : []),
      // An unused new key file is harmless.
      ...names.filter((name) => name === 'cluster.key.before'),
      ...(isOpened ? [] : ['its key opens no cluster']),
    ];
  };
  return {
    name: 'renew-crypto',
    calls: [
      ...callsOf('loop', 'fsync', 'write', 'writev', 'pwrite64'),
      ...callsOf('files', 'fsync', 'rename', 'link', 'unlink'),
    ],
    strike: async (point) => {
      if (!isMade) {
        await made();
        await one.startNode('--node', 'node1.example.com');
        isMade = true;
      }
      const former = await readFile(clusterKeyFile, 'utf8');
      const node = one.node();
      const trap = await armTrap(node.pid ?? 0, point);
      const path = '/v1/cluster/renew-crypto';
      const asked = { method: 'POST', body: { skip: [] } };
      const told = await askSocket(nodedSocket, path, asked).then(
        ({ status }) => status,
        () => 0,
      );
      await trap.disarm();
      if (told === 0) await settled(async () => (node.signalCode === null ? ['it lives'] : []), SETTLE_MS); // prettier-ignore
      const isHurt = node.signalCode === 'SIGKILL';
      if (isHurt) await one.startNode('--node', 'node1.example.com');
      const wrong = [...(await settled(left, SETTLE_MS))];
      if (told === 200 && (await readFile(clusterKeyFile, 'utf8')) === former)
        wrong.push('it was told as renewed, and is the former one');
      if (told !== 0 && told !== 200) wrong.push(`it was refused: ${told}`);
      return { isHurt, wrong };
    },
  };
}

/** State of an earlier release when it was killed; see fixtures/upgrade/README.md. */
const FIXTURE = join(import.meta.dirname, '../../fixtures/upgrade/store.sqlite');
const INSTANCES = ['web1.example.com', 'web3.example.com'];
const JOBS = 7;

/** Starts this release on the state of an earlier one. */
export function upgrade(lab: Lab): ProgramOperation {
  const { stateDir, storeFile } = lab.paths;
  return {
    name: 'first start after an upgrade',
    calls: [
      ...callsOf('loop', 'fsync', 'pwrite64', 'write', 'rename', 'unlink', 'mkdir', 'clone'),
      ...callsOf('files', 'fsync', 'rename', 'unlink', 'mkdir'),
    ],
    strike: async (point) => {
      await rm(stateDir, { recursive: true, force: true });
      await mkdir(dirname(storeFile), { recursive: true, mode: 0o755 });
      await copyFile(FIXTURE, storeFile);
      const isHurt = await startUntilCall(lab, point, []);
      if (isHurt) await lab.startNode();
      const wrong: string[] = [];
      for (const name of INSTANCES) {
        const { installState } = await infoOf(lab, name);
        const wanted = name === INSTANCES[0] ? 'installed' : 'failed';
        if (installState !== wanted) wrong.push(`${name} is ${installState}`);
      }
      if ((await jobsOf(lab)).length < JOBS) wrong.push('jobs are gone');
      wrong.push(
        ...(await settled(
          async () => [
            // The fixture has only the store.
            ...(await findViolations(lab.paths)).filter((text) => !text.endsWith('has no disks')),
            ...(await findRemains(lab)),
          ],
          SETTLE_MS,
        )),
      );
      await lab.stopNode();
      return { isHurt, wrong };
    },
  };
}
