import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { jobRecord } from '#shared/contract/job.ts';
import { ask, infoOf, submit, succeed } from '../e2e/support/ask-nodes.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { askAtPoint } from './ask-at-point.ts';
import { findRemains } from './find-remains.ts';
import { armTrap, callsOf, type KillPoint } from './kill-at-call.ts';
import { createPointScene, ONE, settled, TWO, WRITTEN } from './point-scene.ts';
import {
  judgePeace,
  labOf,
  makeNodes,
  type MoveScene,
  NAMES,
  type Nodes,
  type Struck,
} from './program-move.ts';
import type { ProgramOperation } from './program-points.ts';

/** The shortest allowed lease, because each point waits for its end. */
const LEASE_S = 9;
/** The restarted node must rejoin, and learn that it lost the instance. */
const SETTLE_MS = 60_000;
const LOOK_MS = 50;

interface Shared {
  readonly nodes: Nodes;
  /** The shared folder of both nodes. */
  readonly folder: string;
}

/**
 * Kills the node of a stopped instance with shared disks, and lets the other node take over. That
 * node is killed at the point.
 */
export function createFailoverScene(): MoveScene {
  const undo = new AsyncDisposableStack();
  let making: Promise<Shared> | undefined;
  const operation = (name: string, calls: ProgramOperation['calls']): ProgramOperation => ({
    ...{ name, calls },
    strike: async (point) => strikeFailover(await (making ??= makeShared(undo)), point),
  });
  return {
    operations: [
      operation('failover', [
        ...callsOf('loop', 'fsync', 'writev'),
        ...callsOf('files', 'fsync', 'symlink', 'rename', 'unlink', 'mkdir'),
      ]),
      // Writes go to the store among others. They are many, and each point takes as long as a
      // lease.
      operation('failover, what is sent', callsOf('loop', 'write')),
    ],
    [Symbol.asyncDispose]: () => undo.disposeAsync(),
  };
}

const optionsOf = (name: string): readonly string[] => [
  ...['--node', name],
  ...['--shared-lease', `${LEASE_S}`],
];

async function makeShared(undo: AsyncDisposableStack): Promise<Shared> {
  const outer = await mkdtemp('/tmp/gnt-pf-');
  undo.defer(() => rm(outer, { recursive: true }));
  const folder = join(outer, 'shared');
  await mkdir(folder, { mode: 0o700 });
  const nodes = await makeNodes(undo, ['--shared-lease', `${LEASE_S}`]);
  const lab = labOf(nodes, NAMES[0]);
  const { must, create, absent } = createPointScene(lab);
  await absent(ONE);
  await succeed(lab, 'gnt-cluster', 'modify', '--shared-file-storage-dir', folder);
  await must(create(TWO, { node: NAMES[0], diskTemplate: 'sharedfile' }));
  return { nodes, folder };
}

async function strikeFailover(shared: Shared, point: KillPoint): Promise<Struck> {
  const { nodes } = shared;
  const { primaryNode: from } = await infoOf(labOf(nodes, NAMES[0]), TWO);
  const to = NAMES.find((other) => other !== from) ?? '';
  const [lost, taker] = [labOf(nodes, from), labOf(nodes, to)];
  const opcode = { opcode: 'INSTANCE_FAILOVER', name: TWO, node: to };
  const dead = once(lost.node(), 'exit');
  lost.node().kill('SIGKILL');
  await dead;
  await outlastLease(shared, to, opcode);
  const wrong: string[] = [];
  const node = taker.node();
  const trap = await armTrap(node.pid ?? 0, point);
  const { isDone } = await askAtPoint(
    taker,
    {
      name: 'failover',
      prepare: () => Promise.resolve(),
      opcode: () => opcode,
      judge: () => Promise.resolve([]),
    },
    { note: (text) => wrong.push(text), isNamed: () => false, isDaemonToEnd: true },
  );
  await trap.disarm();
  const isHurt = node.signalCode === 'SIGKILL';
  if (isHurt) await taker.startNode(...optionsOf(to));
  if (!isHurt && !isDone) wrong.push('it failed, and nothing disturbed it');
  await lost.startNode(...optionsOf(from));
  wrong.push(...(await settled(() => judge(shared, isDone ? to : null), SETTLE_MS)));
  // The owner of the instance must be able to use it.
  const again = { opcode: 'INSTANCE_REINSTALL', name: TWO, start: false };
  const { error } = await submit(taker, again);
  if (error !== null) wrong.push(`used: ${error.message}`);
  wrong.push(...(await judge(shared, null)));
  return { isHurt, wrong };
}

/**
 * Waits until the lost node's lease has ended. The lease runs from when another node first checks,
 * so a job starts it and is canceled. The trap then counts only the calls of the takeover.
 */
async function outlastLease({ nodes }: Shared, to: string, opcode: object): Promise<void> {
  const taker = labOf(nodes, to);
  const { nodedSocket } = taker.paths;
  const { body } = await askSocket(nodedSocket, '/v1/jobs', { method: 'POST', body: opcode });
  const { id } = z.object({ id: z.number() }).parse(JSON.parse(body));
  for (let isAsked = false; ; await sleep(LOOK_MS)) {
    const job = await ask(taker, `/v1/jobs/${id}`, jobRecord);
    if (job.endedAtMs !== null) break;
    if (isAsked || !job.log.some(({ message }) => message.includes('its lease ends in'))) continue;
    isAsked = true;
    await askSocket(nodedSocket, `/v1/jobs/${id}`, { method: 'DELETE' });
  }
  await sleep(LEASE_S * 1000);
}

/** @param where node that was reported; null: either node */
async function judge({ nodes, folder }: Shared, where: string | null): Promise<readonly string[]> {
  const wrong: string[] = [];
  const { uuid, primaryNode } = await infoOf(labOf(nodes, NAMES[0]), TWO);
  if (where !== null && primaryNode !== where)
    wrong.push(`told to be on ${where}, on ${primaryNode}`);
  for (const [name, lab] of nodes) {
    const links = (await readdir(lab.paths.disksDir)).filter((one) => !one.startsWith('.'));
    // A node makes the link when it uses the disks.
    if (links.some((one) => one !== uuid || primaryNode !== name))
      wrong.push(`disks on ${name}: ${links.join()}`);
    wrong.push(...(await judgePeace(name, lab)));
    wrong.push(...(await findRemains(lab)).map((text) => `${name}: ${text}`));
  }
  const there = (await readdir(folder)).toSorted().join();
  if (there !== [uuid, 'gnt-cluster-uuid'].toSorted().join()) wrong.push(`in the folder: ${there}`);
  const disk = await readFile(join(folder, uuid, 'disk0.raw')).catch(() => Buffer.alloc(0));
  if (disk.subarray(0, WRITTEN.length).toString() !== WRITTEN) wrong.push('its disk is empty');
  return wrong;
}
