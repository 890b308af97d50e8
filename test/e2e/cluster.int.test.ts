import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  createLab,
  type Lab,
  type ProgramName,
  type ProgramResult,
} from '../../scripts/lab/lab.ts';
import { startRedis, type RedisServer } from '../shared/store/redis-server.ts';

/** Nodes under roots of their own with one real Redis between them, driven by the real commands. No machine is booted. */
const ONE = 'node1.example.com';
const TWO = 'node2.example.com';
let redis: RedisServer;
let one: Lab;
let two: Lab;

before(async () => {
  redis = await startRedis({ appendOnly: true });
  [one, two] = await Promise.all([createLab('gnt-c1'), createLab('gnt-c2')]);
});

after(async () => {
  await Promise.all([one, two].map((lab) => lab.stopNode()));
  const leftovers = (await Promise.all([one, two].map((lab) => lab.findLeftovers()))).flat();
  await Promise.all([one, two].map((lab) => lab.dispose()));
  await redis.stop();
  assert.deepEqual(leftovers, []);
});

const url = (): string => `unix:${redis.socket}`;

async function succeed(lab: Lab, program: ProgramName, ...args: string[]): Promise<string> {
  const result = await lab.run(program, args);
  assert.equal(result.status, 0, `${program} ${args.join(' ')}: ${result.stderr}`);
  return result.stdout;
}

function assertRefused(result: ProgramResult, status: number, code: string, text: RegExp): void {
  assert.equal(result.status, status, result.stderr);
  assert.match(result.stderr, new RegExp(`^error\\[${code}\\]: `, 'm'));
  assert.match(result.stderr, text);
}

test('the first node makes the cluster, others join with its key and with no other', async () => {
  const init = (lab: Lab, ...args: string[]): Promise<ProgramResult> =>
    lab.run('gnt-cluster', ['init', ...args]);
  assertRefused(await init(one, '--store', 'mysql://h/db'), 2, 'USAGE', /'mysql:\/\/h\/db'/);
  assertRefused(await init(one, '--cluster-key', '/k'), 2, 'USAGE', /needs --store/);
  assertRefused(await init(one, '--store', 'unix:/nowhere'), 2, 'HOST_PREREQUISITE', /\/nowhere/);
  const made = await init(one, '--store', url(), 'gnt.example.com');
  assert.equal(made.status, 0, made.stderr);
  const { clusterKeyFile } = one.paths;
  for (const name of ['cluster.key', 'store.json'])
    assert.equal((await stat(join(one.paths.stateDir, name))).mode & 0o777, 0o600);
  assertRefused(await init(two, '--store', url()), 2, 'STORE_KEY', /--cluster-key FILE/);
  const joined = await init(two, '--store', url(), '--cluster-key', clusterKeyFile);
  assert.match(joined.stderr, /^this node is in cluster gnt\.example\.com/);
  assert.equal((await init(two, '--store', url())).status, 0);
  assertRefused(await init(two, '--store', 'redis://h'), 2, 'NOT_SUPPORTED', /redis|unix/);
  await Promise.all([one.startNode('--node', ONE), two.startNode('--node', TWO)]);
  for (const lab of [one, two]) {
    const info = JSON.parse(await succeed(lab, 'gnt-cluster', 'info', '--json')) as object;
    assert.deepEqual({ ...info, nodes: [ONE, TWO], store: url(), name: 'gnt.example.com' }, info);
  }
  assertRefused(await init(one, '--store', 'redis://:hunter22@h'), 2, 'NOT_SUPPORTED', /unix:/);
});
