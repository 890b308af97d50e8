import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MIB } from '#shared/units/bytes.ts';
import { inNetworkNamespace, openDeviceSocket } from '#shared/sys/network-sockets.ts';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab } from '../../../scripts/demo/lab.ts';
import { addOs, submit, succeed } from '../../e2e/support/ask-nodes.ts';
import { listenOnLoopback } from '../../lab/listen-on-loopback.ts';
import { startRedis } from '../../noded/support/redis-server.ts';
import { addLink, BareMachine, modelOf, type MachineModel } from '../support/bare-machine.ts';
import {
  COUNTER_PORT,
  createCounter,
  makeCountingGuest,
  type Counter,
} from '../support/counting-guest.ts';
import { median, type Report } from '../support/measurement.ts';

const ONE = 'node1.example.com';
const TWO = 'node2.example.com';
const NAME = 'counter.example.com';
const DISK_BYTES = 64 * MIB;
const MEMORY_MIB = 128;
const ROUNDS = 3;
const COUNTED_BEFORE = 20;
const COUNTED_AFTER = 20;

interface Round {
  readonly gapMs: number;
  /** Median gap between two numbers. */
  readonly usualMs: number;
  /** Downtime as reported by the mover. */
  readonly toldMs: number;
}

/** Moves the guest. Returns the reported downtime in milliseconds. */
type Mover = () => Promise<number>;

/**
 * Migrates a guest that counts over HTTP, with its disk, in alternation: by `gnt-instance migrate`
 * between two nodes, and between two bare QEMU processes with the same arguments and parameters on
 * one bridge. Measures the longest gap between two numbers. With TCG, our migration stops the guest
 * while it sends the memory, so the bare one is also measured stopped.
 */
export async function measure(report: Report): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'gnt-bench-migrate-'));
  stack.defer(() => rm(folder, { recursive: true }));
  const redis = await startRedis({ appendOnly: true });
  stack.defer(() => redis.stop());
  const [one, two] = await Promise.all([createLab('gnt-bm1'), createLab('gnt-bm2')]);
  stack.defer(async () => {
    await submit(one, { opcode: 'INSTANCE_REMOVE', name: NAME, shutdownTimeoutS: 0 });
    await Promise.all([one.dispose(), two.dispose()]);
  });
  const ours = createCounter();
  stack.defer(() => void ours.server.close());
  await startNodes(one, two, `unix:${redis.socket}`, await listenOnLoopback(ours.server));
  await startGuest(one);
  const pid = await pidOfQemu(one);
  const model = await modelOf(pid, folder, DISK_BYTES);
  const bare = await startBare(model, folder, stack);
  await Promise.all([ours.untilCounted(COUNTED_BEFORE), bare.counter.untilCounted(COUNTED_BEFORE)]);
  const movers: Record<string, readonly [Counter, Mover]> = {
    ours: [ours, createOurMover(one, two)],
    'bare QEMU, standing': [bare.counter, () => bare.move(true)],
    'bare QEMU': [bare.counter, () => bare.move(false)],
  };
  const rounds: Record<string, Round[]> = {};
  for (let round = 1; round <= ROUNDS; round += 1)
    for (const [name, [counter, move]] of Object.entries(movers)) {
      const moved = await moveOnce(counter, move);
      (rounds[name] ??= []).push(moved);
      const longest = { name: `${name}: longest gap, round ${round}`, value: moved.gapMs };
      report({ ...longest, unit: 'ms', compared_with: null });
    }
  reportRounds(rounds, report);
}

async function moveOnce(counter: Counter, move: Mover): Promise<Round> {
  await counter.untilCounted(COUNTED_BEFORE);
  const from = counter.count();
  const toldMs = await move();
  await counter.untilCounted(COUNTED_AFTER);
  const gaps = counter.gapsMs(from);
  return { gapMs: gaps.at(-1) ?? Number.NaN, usualMs: median(gaps), toldMs };
}

function reportRounds(rounds: Readonly<Record<string, readonly Round[]>>, report: Report): void {
  const of = (name: string, pick: (round: Round) => number): number[] =>
    (rounds[name] ?? []).map(pick);
  const gapOf = (name: string): number => median(of(name, ({ gapMs }) => gapMs));
  for (const name of Object.keys(rounds)) {
    const add = (what: string, value: number, other?: string): void =>
      report({
        ...{ name: `${name}: ${what}`, value, unit: 'ms' },
        compared_with: other === undefined ? null : { name: other, value: gapOf(other) },
      });
    add('stood still as told, p50', median(of(name, ({ toldMs }) => toldMs)));
    add('usual gap, p50', median(of(name, ({ usualMs }) => usualMs)));
    if (name !== 'ours') add('longest gap, p50', gapOf(name));
    else
      for (const other of Object.keys(rounds))
        if (other !== 'ours') add('longest gap, p50', gapOf('ours'), other);
  }
}

async function startNodes(one: Lab, two: Lab, url: string, port: number): Promise<void> {
  await succeed(one, 'gnt-cluster', 'init', '--store', url, 'gnt.example.com');
  const { clusterKeyFile } = one.paths;
  await succeed(two, 'gnt-cluster', 'init', '--store', url, '--cluster-key', clusterKeyFile);
  const { status, stderr } = await one.run('gnt-appliance', ['build']);
  if (status !== 0) throw new Error(stderr);
  await Promise.all([one.startNode('--node', ONE), two.startNode('--node', TWO)]);
  for (const lab of [one, two]) await addOs(lab, 'both', ['exit 0']);
  await succeed(one, 'gnt-os', 'trust', 'both');
  const service = `counter=${COUNTER_PORT}:127.0.0.1:${port}`;
  await succeed(one, 'gnt-cluster', 'modify', '--expose-service', service);
}

async function startGuest(lab: Lab): Promise<void> {
  const { kernel, initrd } = await makeCountingGuest(lab);
  const made = await submit(lab, {
    ...{ opcode: 'INSTANCE_CREATE', name: NAME, node: ONE, install: false, start: false },
    ...{ nics: [], communication: true, seedDisk: false, osType: 'both' },
    ...{ disks: [{ sizeBytes: DISK_BYTES }], beparams: { memoryMiB: MEMORY_MIB, vcpus: 1 } },
    hvparams: {
      kernel_path: kernel,
      initrd_path: initrd,
      kernel_args: 'console=ttyS0 quiet',
    },
  });
  const begun = made.error ?? (await submit(lab, { opcode: 'INSTANCE_STARTUP', name: NAME })).error;
  if (begun !== null) throw new Error(begun.message);
}

async function pidOfQemu(lab: Lab): Promise<number> {
  const found = (await lab.processes()).find(({ command }) =>
    /^\S*qemu-system-\S+ -name guest=/.test(command),
  );
  if (found === undefined) throw new Error('the guest has no QEMU');
  return found.pid;
}

/** Returns a mover that alternates between the nodes. */
function createOurMover(one: Lab, two: Lab): Mover {
  let here = ONE;
  return async () => {
    const [lab, there] = here === ONE ? [one, TWO] : [two, ONE];
    const { status, stderr } = await lab.run('gnt-instance', ['migrate', '-n', there, NAME]);
    if (status !== 0) throw new Error(stderr);
    here = there;
    return Number(/stood still for (\d+) ms/.exec(stderr)?.[1]);
  };
}

interface Bare {
  readonly counter: Counter;
  move(standing: boolean): Promise<number>;
}

async function startBare(
  model: MachineModel,
  folder: string,
  stack: AsyncDisposableStack,
): Promise<Bare> {
  const namespace = `gnt-bench-${process.pid}`;
  await addLink(namespace);
  stack.defer(async () => void (await run('ip', ['netns', 'del', namespace])));
  const counter = createCounter();
  const address = { address: '169.254.169.254', port: COUNTER_PORT };
  const fd = inNetworkNamespace(`/run/netns/${namespace}`, () =>
    openDeviceSocket({ device: null, type: 'tcp', ...address }),
  );
  counter.server.listen({ fd });
  stack.defer(() => void counter.server.close());
  const where = { namespace, folder };
  let machine = await BareMachine.start(model, 'boots', where);
  stack.defer(() => machine.end());
  return {
    counter,
    move: async (standing) => {
      const source = machine;
      const target = await BareMachine.start(model, 'waits', where);
      stack.defer(() => target.end());
      const downtimeMs = await source.migrateTo(target, standing);
      machine = target;
      await source.end();
      return downtimeMs;
    },
  };
}
