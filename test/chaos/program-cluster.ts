import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Redis } from 'ioredis';
import { isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { loadClusterKeys } from '#shared/store/cluster-keys.ts';
import { openSealedRedis } from '#shared/store/cluster-store.ts';
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

/** What a cluster of two shares, and how it is made anew. */
export interface ClusterScene {
  readonly redis: RedisServer;
  readonly client: Redis;
  readonly one: Lab;
  readonly two: Lab;
  /** A new cluster whose first node has not started yet. */
  readonly made: () => Promise<void>;
  readonly forget: (lab: Lab) => Promise<void>;
  /** Starts the node of a cluster that has nobody else, and looks. */
  readonly aloneAfterStart: (lab: Lab) => Promise<string[]>;
}

const urlOf = (redis: RedisServer): string => `unix:${redis.socket}`;

/** By a word that is good once: where it was used up, another one has to do. */
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

/** Whether the records of a store are sealed with that key; not before a renewal is over. */
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

/** The node is killed that carries it out: it goes on by itself, and one key is left. */
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
      // A key that was made, and is in no record yet, is in nobody's way.
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

/** What an earlier release had written when it was killed; fixtures/upgrade/README.md tells how. */
const FIXTURE = join(import.meta.dirname, '../../fixtures/upgrade/store.sqlite');
const INSTANCES = ['web1.example.com', 'web3.example.com'];
const JOBS = 7;

/** The first start of a release on what an earlier one left. */
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
            // The store alone was kept.
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
