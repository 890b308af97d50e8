import assert from 'node:assert/strict';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { instanceInfo } from '#shared/contract/instance.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { ask, leaveBehind, listed, succeed } from '../e2e/support/ask-nodes.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { startRedis, type RedisServer } from '../noded/support/redis-server.ts';
import { armTrap, callsOf, type KillPoint } from './kill-at-call.ts';
import { runUntilCall, startUntilCall, type Program } from './kill-program.ts';
import { type ClusterScene, joinByToken, keyRenewal, upgrade } from './program-cluster.ts';
import { machineOperations } from './program-machines.ts';
import { createFailoverScene } from './program-failover.ts';
import { createMigrateScene } from './program-migrate.ts';
import { createMoveScene } from './program-move.ts';

/**
 * An operation outside of jobs: a cluster is created or joined, a node starts or is removed, the
 * appliance is installed.
 */
export interface ProgramOperation {
  readonly name: string;
  readonly calls: readonly Pick<KillPoint, 'thread' | 'call'>[];
  /** Prepares the operation, kills it at the point, and repeats it, which must succeed. */
  strike(
    point: KillPoint,
  ): Promise<{ readonly isHurt: boolean; readonly wrong: readonly string[] }>;
}

const ONE = 'node1.example.com';
const GONE = 'node3.example.com';
const KEPT = ['fsync', 'rename', 'link', 'unlink', 'mkdir', 'write'];
export interface ProgramScene extends AsyncDisposable {
  readonly operations: readonly ProgramOperation[];
}

/** Creates a Redis and the roots of the nodes. */
export async function createProgramScene(): Promise<ProgramScene> {
  await using undo = new AsyncDisposableStack();
  const redis = await startRedis({ appendOnly: true });
  undo.defer(() => redis.stop());
  const labs: Lab[] = [];
  for (const name of ['gnt-pp1', 'gnt-pp2', 'gnt-pp3', 'gnt-pp4', 'gnt-pp5']) {
    const lab = await createLab(name);
    undo.defer(() => lab.dispose());
    labs.push(lab);
  }
  const client = new Redis({ path: redis.socket });
  undo.defer(() => client.disconnect());
  const [one, two, three, four, five] = labs;
  assert.ok(one && two && three && four && five);
  const moves = undo.use(createMoveScene());
  const migrations = undo.use(createMigrateScene());
  const cluster: ClusterScene = {
    ...{ redis, client, one, two, forget, aloneAfterStart },
    made: () => made(redis, client, one),
  };
  const failovers = undo.use(createFailoverScene());
  const all = undo.move();
  return {
    operations: [
      clusterInit(redis, client, one),
      clusterJoin(redis, client, one, two),
      joinByToken(cluster),
      keyRenewal(cluster),
      nodeStart(redis, client, one),
      upgrade(five),
      nodeRemove(redis, client, one),
      applianceBuild(three),
      ...machineOperations(four),
      ...moves.operations,
      ...migrations.operations,
      ...failovers.operations,
    ],
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

const urlOf = (redis: RedisServer): string => `unix:${redis.socket}`;

async function forget(lab: Lab): Promise<void> {
  await lab.stopNode();
  await rm(lab.paths.stateDir, { recursive: true, force: true });
}

/** Repeats an interrupted program, which must succeed. */
async function runTwice(
  program: Program,
  point: KillPoint,
  lab: Lab,
): Promise<[boolean, string[]]> {
  const { isHurt, stderr } = await runUntilCall(program, point);
  const name = program.name as 'gnt-cluster' | 'gnt-appliance';
  const again = await lab.run(name, program.args, { timeoutMs: 60_000 });
  const wrong = again.status === 0 ? [] : [`repeated: ${again.stderr}, after ${stderr}`];
  return [isHurt, wrong];
}

/** Finds unexpected files after a daemon of this root has started. */
async function strayFiles({ paths }: Lab): Promise<string[]> {
  const known =
    /^(store\.json|cluster\.key|node\.key|boot-id|seen-records\.sqlite(-wal|-shm)?|disks|images|outcomes|host-copies)$/;
  const names = await readdir(paths.stateDir);
  return names.filter((name) => !known.test(name)).map((name) => `file ${name}`);
}

function clusterInit(redis: RedisServer, client: Redis, lab: Lab): ProgramOperation {
  const args = ['init', '--store', urlOf(redis), 'gnt.example.com'];
  return {
    name: 'cluster init',
    calls: callsOf('loop', ...KEPT),
    strike: async (point) => {
      await forget(lab);
      await client.flushall();
      const program: Program = {
        ...{ folder: 'cluster-cli', name: 'gnt-cluster', root: lab.paths.root, args },
      };
      const [isHurt, wrong] = await runTwice(program, point, lab);
      if (wrong.length > 0 || !isHurt) return { isHurt, wrong };
      return { isHurt, wrong: await aloneAfterStart(lab) };
    },
  };
}

/** Starts the only node of a cluster and checks it. */
async function aloneAfterStart(lab: Lab): Promise<string[]> {
  await lab.startNode('--node', ONE);
  const nodes = await listed(lab);
  const wrong = await strayFiles(lab);
  await lab.stopNode();
  if (JSON.stringify(nodes) !== JSON.stringify([[ONE, 'up', 0]])) wrong.push(JSON.stringify(nodes));
  return wrong;
}

function clusterJoin(redis: RedisServer, client: Redis, one: Lab, two: Lab): ProgramOperation {
  const args = ['init', '--store', urlOf(redis), '--cluster-key', one.paths.clusterKeyFile];
  return {
    name: 'cluster join',
    calls: callsOf('loop', ...KEPT),
    strike: async (point) => {
      await forget(two);
      await made(redis, client, one);
      const program: Program = {
        ...{ folder: 'cluster-cli', name: 'gnt-cluster', root: two.paths.root, args },
      };
      const [isHurt, wrong] = await runTwice(program, point, two);
      if (wrong.length > 0 || !isHurt) return { isHurt, wrong };
      return { isHurt, wrong: await aloneAfterStart(two) };
    },
  };
}

/** Creates a new cluster whose first node has not started yet. */
async function made(redis: RedisServer, client: Redis, lab: Lab): Promise<void> {
  await forget(lab);
  await client.flushall();
  await succeed(lab, 'gnt-cluster', 'init', '--store', urlOf(redis), 'gnt.example.com');
}

function nodeStart(redis: RedisServer, client: Redis, lab: Lab): ProgramOperation {
  return {
    name: 'first start of a node',
    calls: [
      ...callsOf('loop', 'fsync', 'pwrite64', 'write', 'rename', 'unlink', 'mkdir', 'clone'),
      ...callsOf('files', 'fsync', 'rename', 'link', 'unlink', 'mkdir'),
    ],
    strike: async (point) => {
      await made(redis, client, lab);
      const isHurt = await startUntilCall(lab, point, ['--node', ONE]);
      if (!isHurt) {
        await lab.stopNode();
        return { isHurt, wrong: [] };
      }
      return { isHurt, wrong: await aloneAfterStart(lab) };
    },
  };
}

function nodeRemove(redis: RedisServer, client: Redis, lab: Lab): ProgramOperation {
  let isMade = false;
  return {
    name: 'node remove',
    calls: callsOf('loop', 'write', 'writev', 'pwrite64'),
    strike: async (point) => {
      if (!isMade) {
        await made(redis, client, lab);
        await lab.startNode('--node', ONE);
        isMade = true;
      }
      await leaveBehind(urlOf(redis), lab.paths.clusterKeyFile, GONE, 'lost.example.com');
      const node = lab.node();
      const trap = await armTrap(node.pid ?? 0, point);
      const remove = (): Promise<number> =>
        askSocket(lab.paths.nodedSocket, `/v1/nodes/${GONE}?forget-instances=1`, {
          method: 'DELETE',
        }).then(
          ({ status }) => status,
          () => 0,
        );
      const told = await remove();
      await trap.disarm();
      if (told === 0) await gone(node);
      const isHurt = node.signalCode === 'SIGKILL';
      if (isHurt) await lab.startNode('--node', ONE);
      const left = JSON.stringify(await listed(lab));
      const wrong: string[] = [];
      if (left.includes(GONE)) {
        if (told === 204) wrong.push('it was told as removed, and is there');
        const again = await remove();
        if (again !== 204) wrong.push(`repeated: ${again}`);
      }
      const names = (await ask(lab, '/v1/instances', instanceInfo.array())).map(({ name }) => name);
      for (const name of names) wrong.push(`instance ${name}`);
      for (const claims of ['claim-name', 'claim-ip', 'claim-mac'])
        if ((await client.hlen(`{gnt}:c:${claims}`)) > 0) wrong.push(claims);
      return { isHurt, wrong };
    },
  };
}

async function gone(node: {
  readonly signalCode: string | null;
  readonly exitCode: number | null;
}): Promise<void> {
  for (let look = 0; look < 100 && node.signalCode === null && node.exitCode === null; look += 1)
    await sleep(50);
}

function applianceBuild(lab: Lab): ProgramOperation {
  return {
    name: 'appliance build',
    calls: callsOf('files', 'rename', 'link', 'unlink', 'mkdir', 'rmdir', 'fsync', 'fchmodat'),
    strike: async (point) => {
      // The damaged appliance makes the build replace an existing one.
      const program: Program = {
        ...{ folder: 'appliance', name: 'gnt-appliance', root: lab.paths.root, args: ['build'] },
      };
      await succeed(lab, 'gnt-appliance', 'build');
      await rm(join(lab.paths.applianceDir, 'initrd.img'));
      const [isHurt, wrong] = await runTwice(program, point, lab);
      const names = await readdir(lab.paths.stateDir);
      for (const name of names) if (name !== 'appliance') wrong.push(`left ${name}`);
      return { isHurt, wrong };
    },
  };
}
