import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { addOs, infoOf, jobsOf, listed, submit, succeed } from '../e2e/support/ask-nodes.ts';
import { startRedis } from '../noded/support/redis-server.ts';
import { askAtPoint } from './ask-at-point.ts';
import { findRemains } from './find-remains.ts';
import { armTrap, callsOf, type KillPoint } from './kill-at-call.ts';
import { createPointScene, ONE, OS, settled, WRITTEN } from './point-scene.ts';
import type { ProgramOperation } from './program-points.ts';

export const NAMES = ['node1.example.com', 'node2.example.com'] as const;
/** The restarted node must rejoin, and both nodes must settle the move. */
const SETTLE_MS = 60_000;

/** The nodes of a cluster of two, by name. */
export type Nodes = ReadonlyMap<string, Lab>;

export interface MoveScene extends AsyncDisposable {
  readonly operations: readonly ProgramOperation[];
}

/** Moves a stopped instance back and forth between two nodes while one is killed. */
export function createMoveScene(): MoveScene {
  const undo = new AsyncDisposableStack();
  let making: Promise<Nodes> | undefined;
  const nodes = (): Promise<Nodes> => (making ??= makeNodes(undo));
  const operation = (
    name: string,
    side: 'source' | 'target',
    calls: ProgramOperation['calls'],
  ): ProgramOperation => ({
    ...{ name, calls },
    strike: async (point) => strikeMove(await nodes(), side, point),
  });
  return {
    operations: [
      operation('move', 'source', [
        ...callsOf('loop', 'fsync', 'writev', 'write'),
        ...callsOf('files', 'fsync', 'rename', 'unlink', 'rmdir', 'mkdir'),
      ]),
      operation('move, the other node killed', 'target', [
        ...callsOf('loop', 'fsync', 'writev', 'write'),
        ...callsOf('files', 'fsync', 'rename', 'unlink', 'rmdir', 'mkdir', 'ftruncate'),
      ]),
    ],
    [Symbol.asyncDispose]: () => undo.disposeAsync(),
  };
}

/**
 * Creates two nodes with a stopped instance and an OS definition.
 * @param options of both daemons
 */
export async function makeNodes(
  undo: AsyncDisposableStack,
  options: readonly string[] = [],
): Promise<Nodes> {
  const redis = await startRedis({ appendOnly: true });
  undo.defer(() => redis.stop());
  const url = `unix:${redis.socket}`;
  const nodes = new Map<string, Lab>();
  for (const name of NAMES) {
    const lab = await createLab('gnt-pv');
    undo.defer(() => lab.dispose());
    const [first] = nodes.values();
    const words = first ? ['--cluster-key', first.paths.clusterKeyFile] : ['gnt.example.com'];
    await succeed(lab, 'gnt-cluster', 'init', '--store', url, ...words);
    await lab.startNode('--node', name, ...options);
    await addOs(lab, OS, [`echo ${WRITTEN} | dd of="$DISK_0_PATH" conv=notrunc`]);
    nodes.set(name, lab);
  }
  const one = labOf(nodes, NAMES[0]);
  await succeed(one, 'gnt-os', 'trust', OS);
  const { error } = await submit(one, createPointScene(one).create(ONE, { node: NAMES[0] }));
  if (error !== null) throw new Error(error.message);
  return nodes;
}

export function labOf(nodes: Nodes, name: string): Lab {
  const lab = nodes.get(name);
  if (lab === undefined) throw new Error(`no node ${name}`);
  return lab;
}

async function strikeMove(
  nodes: Nodes,
  side: 'source' | 'target',
  point: KillPoint,
): Promise<Struck> {
  const of = { name: ONE, opcode: 'INSTANCE_MOVE' };
  return strikeBoth(nodes, of, side, point, (to) => judgeMove(nodes, to));
}

export type Struck = Awaited<ReturnType<ProgramOperation['strike']>>;

/**
 * Sends an instance to the other node, kills one node meanwhile, and restarts it.
 * @param judge returns problems; its argument is the reported node, null without a report
 */
export async function strikeBoth(
  nodes: Nodes,
  { name, opcode }: { readonly name: string; readonly opcode: string },
  side: 'source' | 'target',
  point: KillPoint,
  judge: (to: string | null) => Promise<readonly string[]>,
): Promise<Struck> {
  const { primaryNode: from } = await infoOf(labOf(nodes, NAMES[0]), name);
  const to = NAMES.find((other) => other !== from) ?? '';
  const victim = side === 'source' ? from : to;
  const node = labOf(nodes, victim).node();
  const wrong: string[] = [];
  const trap = await armTrap(node.pid ?? 0, point);
  const asked = {
    name: opcode,
    prepare: () => Promise.resolve(),
    opcode: () => ({ opcode, name, node: to }),
    judge: () => Promise.resolve([]),
  };
  const { isDone } = await askAtPoint(labOf(nodes, from), asked, {
    note: (text) => wrong.push(text),
    isNamed: () => false,
    isDaemonToEnd: side === 'source',
  });
  await trap.disarm();
  const isHurt = node.signalCode === 'SIGKILL';
  if (isHurt) await labOf(nodes, victim).startNode('--node', victim);
  if (!isHurt && !isDone) wrong.push('it failed, and nothing disturbed it');
  const found = await settled(() => judge(isDone ? to : null), SETTLE_MS);
  return { isHurt, wrong: [...wrong, ...found] };
}

/** @param where node that was reported; null: either node, but only one */
async function judgeMove(nodes: Nodes, where: string | null): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (const [name, lab] of nodes) {
    wrong.push(...(await judgeDisks(name, lab, ONE, where)), ...(await judgePeace(name, lab)));
    wrong.push(...(await findRemains(lab)).map((text) => `${name}: ${text}`));
  }
  return wrong;
}

/** Checks that an instance's disks are only on the node of its record. */
export async function judgeDisks(
  node: string,
  lab: Lab,
  instance: string,
  where: string | null,
): Promise<readonly string[]> {
  const { uuid, primaryNode } = await infoOf(lab, instance);
  const wrong =
    where !== null && primaryNode !== where ? [`told to be on ${where}, on ${primaryNode}`] : [];
  const { disksDir } = lab.paths;
  const isHere = primaryNode === node;
  // Folders of interrupted moves are hidden, and must be gone too.
  const there = (await readdir(disksDir)).filter((one) => !one.startsWith('.'));
  if (there.join() !== (isHere ? uuid : ''))
    return [...wrong, `disks on ${node}: ${there.join() || 'none'}`];
  if (!isHere) return wrong;
  const disk = await readFile(join(disksDir, uuid, 'disk0.raw'));
  const isWritten = disk.subarray(0, WRITTEN.length).toString() === WRITTEN;
  return isWritten ? wrong : [...wrong, 'its disk is empty'];
}

/** Checks that no job is running, and that both nodes see each other. */
export async function judgePeace(node: string, lab: Lab): Promise<readonly string[]> {
  const unended = (await jobsOf(lab)).filter(({ endedAtMs }) => endedAtMs === null);
  const wrong = unended.map(({ id, summary }) => `job ${id}, ${summary}, has no end`);
  const seen = (await listed(lab)) as [string, string][];
  const heard = seen.filter(([, state]) => state === 'up').map(([one]) => one);
  if (heard.sort().join() !== NAMES.join()) wrong.push(`${node} hears ${heard.join()}`);
  return wrong;
}
