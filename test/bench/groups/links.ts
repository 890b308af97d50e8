import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, open, readFile, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { GIB, MIB } from '#shared/units/bytes.ts';
import { createLab, type Lab } from '../../../scripts/demo/lab.ts';
import { addOs, infoOf, submit, succeed } from '../../e2e/support/ask-nodes.ts';
import { askSocket } from '../../lab/ask-socket.ts';
import { startRedis } from '../../noded/support/redis-server.ts';
import { joinHosts, type JoinedHost, measurePlainTcp } from '../support/joined-hosts.ts';
import type { Report } from '../support/measurement.ts';
import { watchServer, type ServerWatch } from '../support/server-work.ts';

const ONE = 'node1.example.com';
const TWO = 'node2.example.com';
const NAME = 'moved.example.com';
const DISK_BYTES = GIB;
/** Through the store it takes minutes otherwise. */
const SLOW_BYTES = 64 * MIB;
/** Questions cost processor time themselves. */
const ASK_PAUSE_MS = 50;
const TICKS_PER_S = 100;

interface Nodes {
  readonly one: Lab;
  readonly two: Lab;
  readonly watch: ServerWatch;
}

/**
 * Moves a disk of incompressible data between two nodes in network namespaces, over a data link and
 * through the store, beside plain TCP between two Node processes over the same link.
 */
export async function measure(report: Report): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const hosts = await joinHosts(stack);
  const redis = await startRedis({ appendOnly: true });
  stack.defer(() => redis.stop());
  const watch = stack.use(watchServer(redis.socket));
  const [one, two] = await Promise.all([
    createLab('gnt-bl1', () => hosts[0].programs),
    createLab('gnt-bl2', () => hosts[1].programs),
  ]);
  stack.defer(async () => {
    await submit(one, { opcode: 'INSTANCE_REMOVE', name: NAME, shutdownTimeoutS: 0 });
    await Promise.all([one.dispose(), two.dispose()]);
  });
  for (const lab of [one, two]) await mountDisks(lab, stack);
  await makeCluster(one, two, `unix:${redis.socket}`, hosts);
  const nodes = { one, two, watch };
  for (const [name, bytes] of [
    ['data link', DISK_BYTES],
    ['through the store', SLOW_BYTES],
  ] as const) {
    if (name === 'through the store') {
      await Promise.all([one.stopNode(), two.stopNode()]);
      await Promise.all([one.startNode('--node', ONE), two.startNode('--node', TWO)]);
    }
    const tcp = await measurePlainTcp(hosts[0], hosts[1]);
    report({ name: 'plain TCP, Node', value: tcp, unit: 'MiB/s', compared_with: null });
    await moveDisk(nodes, { name, bytes, tcp }, report);
  }
}

/** Keeps disks in memory, so that the disk of this host is not measured. */
async function mountDisks({ paths }: Lab, stack: AsyncDisposableStack): Promise<void> {
  const folder = await mkdtemp('/dev/shm/gnt-bench-links-');
  stack.defer(() => rm(folder, { recursive: true }));
  await mkdir(dirname(paths.disksDir), { recursive: true });
  await symlink(folder, paths.disksDir);
}

async function makeCluster(
  one: Lab,
  two: Lab,
  url: string,
  [left, right]: readonly [JoinedHost, JoinedHost],
): Promise<void> {
  await succeed(one, 'gnt-cluster', 'init', '--store', url, 'gnt.example.com');
  const { clusterKeyFile } = one.paths;
  await succeed(two, 'gnt-cluster', 'init', '--store', url, '--cluster-key', clusterKeyFile);
  await Promise.all([
    one.startNode('--node', ONE, '--data-address', left.address),
    two.startNode('--node', TWO, '--data-address', right.address),
  ]);
  for (const lab of [one, two]) await addOs(lab, 'both', ['exit 0']);
  await succeed(one, 'gnt-os', 'trust', 'both');
}

async function moveDisk(
  { one, two, watch }: Nodes,
  { name, bytes, tcp }: { readonly name: string; readonly bytes: number; readonly tcp: number },
  report: Report,
): Promise<void> {
  await placeDisk(one, bytes);
  const cpuBeforeS = (await cpuSeconds(one)) + (await cpuSeconds(two));
  const asking = new AbortController();
  const delays = [one, two].map((lab) => longestAnswerMs(lab, asking.signal));
  const sinceMs = performance.now();
  const { sentBytes } = await watch.during(async () => {
    const { error } = await submit(one, { opcode: 'INSTANCE_MOVE', name: NAME, node: TWO });
    if (error !== null) throw new Error(error.message);
  });
  const seconds = (performance.now() - sinceMs) / 1000;
  asking.abort();
  const longestMs = Math.max(...(await Promise.all(delays)));
  const cpuS = (await cpuSeconds(one)) + (await cpuSeconds(two)) - cpuBeforeS;
  const add = (what: string, value: number, unit: string): void =>
    report({ name: `${name}: ${what}`, value, unit, compared_with: null });
  report({
    ...{ name: `${name}: move of a disk`, value: bytes / MIB / seconds, unit: 'MiB/s' },
    compared_with: { name: 'plain TCP, Node', value: tcp },
  });
  add('processor of both nodes per GiB', (cpuS * GIB) / bytes, 's');
  add('longest answer to a question meanwhile', longestMs, 'ms');
  add('traffic of Redis', sentBytes / MIB, 'MiB');
  await submit(one, { opcode: 'INSTANCE_REMOVE', name: NAME, shutdownTimeoutS: 0 });
}

async function placeDisk(lab: Lab, sizeBytes: number): Promise<void> {
  const { error } = await submit(lab, {
    ...{ opcode: 'INSTANCE_CREATE', name: NAME, node: ONE, install: false, start: false },
    ...{ nics: [], osType: 'both', disks: [{ sizeBytes }], beparams: { memoryMiB: 64 } },
  });
  if (error !== null) throw new Error(error.message);
  const { uuid } = await infoOf(lab, NAME);
  await using file = await open(join(lab.paths.disksDir, uuid, 'disk0.raw'), 'r+');
  for (let at = 0; at < sizeBytes; at += MIB) await file.write(randomBytes(MIB), 0, MIB, at);
  await file.sync();
}

/** Returns the processor time of the daemon, all threads included. */
async function cpuSeconds(lab: Lab): Promise<number> {
  const text = await readFile(`/proc/${lab.node().pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S;
}

/** Asks the node until the signal. The answer waits while the daemon's event loop is blocked. */
async function longestAnswerMs(lab: Lab, signal: AbortSignal): Promise<number> {
  let longestMs = 0;
  while (!signal.aborted) {
    const sinceMs = performance.now();
    await askSocket(lab.paths.nodedSocket, '/v1/no-such-path');
    longestMs = Math.max(longestMs, performance.now() - sinceMs);
    await sleep(ASK_PAUSE_MS);
  }
  return longestMs;
}
