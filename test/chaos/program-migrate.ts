import { infoOf, submit } from '../e2e/support/ask-nodes.ts';
import { findRemains } from './find-remains.ts';
import { callsOf } from './kill-at-call.ts';
import { createPointScene, ONE, TWO } from './point-scene.ts';
import {
  judgeDisks,
  judgePeace,
  labOf,
  makeNodes,
  type MoveScene,
  NAMES,
  type Nodes,
  strikeBoth,
} from './program-move.ts';
import type { ProgramOperation } from './program-points.ts';

/** Calls that talk to QEMU and pass descriptors. Forwarding QEMU's stream uses the same calls. */
const CALLS: ProgramOperation['calls'] = [
  ...callsOf('loop', 'fsync', 'sendmsg', 'clone', 'kill'),
  ...callsOf('files', 'fsync', 'rename', 'unlink', 'rmdir', 'mkdir', 'ftruncate'),
];

/** Migrates a running instance back and forth while one node is killed. Its guest is firmware. */
export function createMigrateScene(): MoveScene {
  const undo = new AsyncDisposableStack();
  let making: Promise<Nodes> | undefined;
  const nodes = (): Promise<Nodes> => (making ??= makeRunning(undo));
  const operation = (name: string, side: 'source' | 'target'): ProgramOperation => ({
    ...{ name, calls: CALLS },
    strike: async (point) => {
      const both = await nodes();
      const of = { name: TWO, opcode: 'INSTANCE_MIGRATE' };
      const { running } = await infoOf(labOf(both, NAMES[0]), TWO);
      const startedAtMs = running?.startedAtMs ?? 0;
      return strikeBoth(both, of, side, point, (to) => judge(both, to, startedAtMs));
    },
  });
  return {
    operations: [
      operation('migrate', 'source'),
      operation('migrate, the other node killed', 'target'),
    ],
    [Symbol.asyncDispose]: () => undo.disposeAsync(),
  };
}

async function makeRunning(undo: AsyncDisposableStack): Promise<Nodes> {
  const nodes = await makeNodes(undo);
  const lab = labOf(nodes, NAMES[0]);
  const { must, create, absent } = createPointScene(lab);
  await absent(ONE);
  const machine = { beparams: { memoryMiB: 32 }, hvparams: { accel: 'tcg' } };
  await must(create(TWO, { node: NAMES[0], communication: true, ...machine }));
  await must({ opcode: 'INSTANCE_STARTUP', name: TWO });
  // An instance keeps running after its daemon stops.
  undo.defer(async () => {
    await submit(lab, { opcode: 'INSTANCE_REMOVE', name: TWO, shutdownTimeoutS: 0 });
  });
  return nodes;
}

/** Checks that the guest runs on one node, was never restarted, and has its disks there. */
async function judge(
  nodes: Nodes,
  where: string | null,
  startedAtMs: number,
): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (const [name, lab] of nodes) {
    wrong.push(...(await judgeDisks(name, lab, TWO, where)), ...(await judgePeace(name, lab)));
    const { uuid, primaryNode, running } = await infoOf(lab, TWO);
    if (running === null) wrong.push('its guest ended');
    else if (running.startedAtMs !== startedAtMs) wrong.push('its guest is another one');
    else if (running.halt != null) wrong.push(`its guest stands still: ${running.halt.reason}`);
    const here = running === null || primaryNode !== name ? [] : [{ uuid, ...running }];
    wrong.push(...(await findRemains(lab, here)).map((text) => `${name}: ${text}`));
  }
  return wrong;
}
