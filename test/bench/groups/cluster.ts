import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLab, type Lab } from '../../../scripts/demo/lab.ts';
import { startRedis, type RedisServer } from '../../noded/support/redis-server.ts';
import { addRecords, nameOfBench, openClusterRecords } from '../support/cluster-records.ts';
import { createIdleEngine, runEmptyJobs } from '../support/empty-jobs.ts';
import { median, percentile, residentBytes, type Report } from '../support/measurement.ts';
import { watchServer, type ServerWork } from '../support/server-work.ts';

const ONE = 'node1.example.com';
const TWO = 'node2.example.com';
const NODES = [ONE, TWO, 'node3.example.com'];
/** Jobs per node. */
const JOBS = 500;
/** Instances of both real nodes together. */
const LISTED = 20_000;
const FEW = 100;
const ROUNDS = 5;
const REQUESTS_AT_ONCE = 64;
const ANSWER_TIMEOUT_MS = 60_000;
/**
 * A node frees the memory of the initial read five seconds after it (shared/sys/release-memory.ts).
 */
const SETTLED_MS = 10_000;
const OTHERS = join(import.meta.dirname, '../support/others-process.ts');

/** Measures two real nodes with one real Redis, by the requests that the commands send. */
export async function measure(report: Report): Promise<void> {
  const redis = await startRedis();
  const labs = await Promise.all([createLab('gnt-bench1'), createLab('gnt-bench2')]);
  try {
    await measureCluster(redis, labs, report);
  } finally {
    await Promise.all(labs.map((lab) => lab.dispose()));
    await redis.stop();
  }
}

async function measureCluster(
  redis: RedisServer,
  [one, two]: readonly [Lab, Lab],
  report: Report,
): Promise<void> {
  const url = `unix:${redis.socket}`;
  await must(one, 'init', '--store', url, 'bench.example.com');
  const { clusterKeyFile } = one.paths;
  await must(two, 'init', '--store', url, '--cluster-key', clusterKeyFile);
  const { store } = await openClusterRecords(url, clusterKeyFile);
  const time = (name: string, value: number): void =>
    report({ name, value, unit: 'ms', compared_with: null });
  try {
    await addRecords(store, [ONE, TWO], { from: 0, to: FEW });
    await startBoth(one, two);
    const before = await settledBytes(one);
    await Promise.all([one.stopNode(), two.stopNode()]);
    await addRecords(store, [ONE, TWO], { from: FEW, to: LISTED });
    const begunAt = performance.now();
    await startBoth(one, two);
    time(`start of both nodes, ${LISTED} instances`, performance.now() - begunAt);
    const after = await settledBytes(one);
    const each = (after - before) / LISTED / 1024;
    report({
      name: 'memory of a node, each instance',
      value: each,
      unit: 'KiB',
      compared_with: null,
    });
    await measureLists(one, report);
    await measureServer(one, redis, report);
    time('the command, whole', await timeCommand(one));
    await measureAsked(one, report);
    await measureAtOnce(one, report);
    await Promise.all([one.stopNode(), two.stopNode()]);
    await measureJobs(url, clusterKeyFile, one.paths.root, report);
  } finally {
    await store.close();
  }
}

/** Measures jobs without work of three nodes that draw their ids from one store. */
async function measureJobs(
  url: string,
  keyFile: string,
  root: string,
  report: Report,
): Promise<void> {
  const stores = await Promise.all(NODES.map(() => openClusterRecords(url, keyFile)));
  const engines = stores.map(({ store }, index) =>
    createIdleEngine(NODES[index] ?? ONE, store, join(root, `outcomes-${index}`)),
  );
  try {
    for (const atOnce of [4, 64]) {
      const begunAt = performance.now();
      await Promise.all(engines.map((engine) => runEmptyJobs(engine, JOBS, atOnce)));
      const value = (1000 * JOBS * engines.length) / (performance.now() - begunAt);
      const name = `jobs of 3 nodes, ${atOnce} at once on each`;
      report({ name, value, unit: 'a second', compared_with: null });
    }
  } finally {
    await Promise.all(engines.map((engine) => engine.stop()));
    await Promise.all(stores.map(({ store }) => store.close()));
  }
}

/** Measures `gnt-instance list`, including its process start. */
async function timeCommand(lab: Lab): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const begunAt = performance.now();
    const { status, stderr } = await lab.run('gnt-instance', ['list', '-o', 'name,status']);
    if (status !== 0) throw new Error(stderr);
    times.push(performance.now() - begunAt);
  }
  return median(times);
}

async function measureServer(lab: Lab, redis: RedisServer, report: Report): Promise<void> {
  await using server = watchServer(redis.socket);
  const works: ServerWork[] = [];
  for (let round = 0; round < ROUNDS; round += 1)
    works.push(await server.during(() => askTimed(lab, LISTS.names)));
  const add = (name: string, value: number, unit: string): void =>
    report({ name: `list, names: ${name}`, value, unit, compared_with: null });
  add('commands in Redis', median(works.map(({ commandsMs }) => commandsMs)), 'ms');
  add('bytes from Redis', median(works.map(({ sentBytes }) => sentBytes)) / 1024, 'KiB');
}

async function startBoth(one: Lab, two: Lab): Promise<void> {
  await Promise.all([one.startNode('--node', ONE), two.startNode('--node', TWO)]);
}

/** Returns the resident memory after the node freed the memory of its start. */
async function settledBytes(lab: Lab): Promise<number> {
  // The answer waits for the initial read to complete.
  await askTimed(lab, LISTS.names);
  await sleep(SETTLED_MS);
  return residentBytes(lab.node().pid ?? 0);
}

async function must(lab: Lab, ...args: readonly string[]): Promise<void> {
  const { status, stderr } = await lab.run('gnt-cluster', args);
  if (status !== 0) throw new Error(stderr);
}

interface Timed {
  readonly status: number;
  readonly firstByteMs: number;
  readonly totalMs: number;
  readonly body: string;
}

function askTimed(lab: Lab, path: string, body?: object): Promise<Timed> {
  const begunAt = performance.now();
  return new Promise((resolve, reject) => {
    const asking = request(
      {
        ...{ socketPath: lab.paths.nodedSocket, path, method: body ? 'POST' : 'GET', agent: false },
        headers: { host: 'node', 'content-type': 'application/json' },
        timeout: ANSWER_TIMEOUT_MS,
      },
      (answer) => {
        let firstByteMs: number | undefined;
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => {
          firstByteMs ??= performance.now() - begunAt;
          chunks.push(chunk);
        });
        answer.on('end', () => {
          const totalMs = performance.now() - begunAt;
          const status = answer.statusCode ?? 0;
          const body = Buffer.concat(chunks).toString();
          resolve({ status, firstByteMs: firstByteMs ?? totalMs, totalMs, body });
        });
        answer.on('error', reject);
      },
    );
    asking.on('timeout', () => asking.destroy(new Error(`${path} is not answered`)));
    asking.on('error', reject);
    asking.end(body && JSON.stringify(body));
  });
}

/** Requests of `gnt-instance list`, without and with `--json`. */
const LISTS = { names: '/v1/instance-summaries', 'all that is known': '/v1/instances' };

async function measureLists(lab: Lab, report: Report): Promise<void> {
  for (const [what, path] of Object.entries(LISTS)) {
    const lists: Timed[] = [];
    const waits: Wait[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      waits.push(...(await waitsDuring(lab, async () => lists.push(await askTimed(lab, path)))));
    }
    const [last] = lists.slice(-1);
    const silent = last?.body.match(/ERROR_nodedown/g)?.length ?? 0;
    const add = (name: string, value: number, unit: string): void =>
      report({ name: `list, ${what}: ${name}`, value, unit, compared_with: null });
    add('first byte', median(lists.map(({ firstByteMs }) => firstByteMs)), 'ms');
    add('whole', median(lists.map(({ totalMs }) => totalMs)), 'ms');
    add('size', (last?.body.length ?? 0) / 2 ** 20, 'MiB');
    add('longest wait of others', Math.max(...waits.map(({ ms }) => ms)), 'ms');
    add('longest work before an answer', Math.max(...waits.map(({ workMs }) => workMs)), 'ms');
    add('instances of a healthy node told as down', silent / 2, 'of all');
  }
}

interface Wait {
  readonly ms: number;
  readonly workMs: number;
}

/** Returns the latency of a trivial request, repeated while `work` runs. */
async function waitsDuring(lab: Lab, work: () => Promise<unknown>): Promise<readonly Wait[]> {
  const others = spawn(process.execPath, [OTHERS, lab.paths.nodedSocket, `${lab.node().pid}`], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(others.stdout, 'readable');
  await work();
  others.stdin.end();
  return JSON.parse((await text(others.stdout)) || '[]') as Wait[];
}

/** Measures requests while lists run one after another. */
async function measureAsked(lab: Lab, report: Report): Promise<void> {
  const own = nameOfBench(0);
  const asked: readonly (readonly [string, string, object?])[] = [
    ['info of one instance', `/v1/instances/${own}`],
    ['startup of one instance, checked', '/v1/jobs?dry-run=1', { opcode: 'INSTANCE_STARTUP', name: own }],
    ['/metrics', '/metrics'],
    ['/v1/cluster', '/v1/cluster'],
  ]; // prettier-ignore
  for (const [what, path, body] of asked) {
    const times: number[] = [];
    let isOver = false;
    const listing = (async () => {
      while (!isOver) await askTimed(lab, Object.values(LISTS)[0] ?? '');
    })();
    for (let round = 0; round < ROUNDS * 2; round += 1)
      times.push((await askTimed(lab, path, body)).totalMs);
    isOver = true;
    await listing;
    const value = percentile(times, 0.5);
    report({ name: `${what}, beside lists, p50`, value, unit: 'ms', compared_with: null });
  }
}

/** Measures requests that another node must answer. */
async function measureAtOnce(lab: Lab, report: Report): Promise<void> {
  const answers = await Promise.all(
    Array.from({ length: REQUESTS_AT_ONCE }, (_, index) =>
      askTimed(lab, `/v1/instances/${nameOfBench(2 * index + 1)}/disks`),
    ),
  );
  const failed = answers.filter(({ body }) => body.includes('NODE_UNREACHABLE')).length;
  const name = `${REQUESTS_AT_ONCE} requests at once to one node: failed`;
  report({ name, value: failed, unit: '', compared_with: null });
  const value = Math.max(...answers.map(({ totalMs }) => totalMs));
  report({ name: 'the longest of them', value, unit: 'ms', compared_with: null });
}
