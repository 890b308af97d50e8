import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { Redis } from 'ioredis';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { loadClusterKeys } from '#shared/store/cluster-keys.ts';
import { readEmbeddedStore } from '#shared/store/embedded-store.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { readStoreChoice } from '#shared/store/store-choice.ts';
import { claimRoot } from '#shared/sys/claim-root.ts';
import { issueJoinToken } from '../../noded/cluster/membership/join-tokens.ts';
import { createClusterRepository } from '../../noded/records/cluster-repository.ts';
import { openStore } from '../../noded/records/open-store.ts';
import { createProfileRepository } from '../../noded/records/profile-repository.ts';
import { createLab, type Lab, type ProgramResult } from '../../scripts/demo/lab.ts';
import { assertRefused } from '../e2e/support/ask-nodes.ts';
import { plan, repositoryOf } from '../noded/records/repository-lab.ts';
import { startRedis, type RedisServer } from '../noded/support/redis-server.ts';

/** Roots after a first start of gnt-noded, and the real command. */
let redis: RedisServer;
let client: Redis;
let one: Lab;
let two: Lab;

before(async () => {
  redis = await startRedis({ appendOnly: true });
  client = new Redis({ path: redis.socket });
  [one, two] = await Promise.all([createLab('gnt-e1'), createLab('gnt-e2')]);
});
after(async () => {
  await Promise.all([one, two].map((lab) => lab.dispose()));
  client.disconnect();
  await redis.stop();
});
beforeEach(async () => {
  await client.flushall();
  for (const { paths } of [one, two])
    await rm(join(paths.root, 'var'), { recursive: true, force: true });
});

const url = (): string => `unix:${redis.socket}`;
const init = (lab: Lab): Promise<ProgramResult> =>
  lab.run('gnt-cluster', ['init', '--store', url(), 'gnt.example.com']);
const issue = async (): Promise<string> => {
  const common = { keys: await loadClusterKeys(one.paths) };
  const membership = { requireMember: () => undefined };
  return (await issueJoinToken(600, { common, paths: one.paths, membership })).token;
};
/** @returns the UUID of the cluster in the embedded store */
async function startOnce({ paths }: Lab, instances: readonly string[] = []): Promise<string> {
  const store = createSqliteStore({ path: paths.storeFile });
  const { uuid } = await createClusterRepository(store, systemClock).ensure();
  for (const name of instances) await repositoryOf(store).create(plan(name));
  await store.close();
  return uuid;
}
async function keptStores({ paths }: Lab): Promise<readonly string[]> {
  const names = await readdir(paths.stateDir);
  return names.filter((name) => name.includes('.replaced-')).map((n) => join(paths.stateDir, n));
}
async function openedBy({ paths }: Lab): Promise<string> {
  const { store, description } = await openStore(paths, systemClock, silentLogger);
  await store.close();
  return description;
}

test('a node that was started once and has no instances becomes the first node of a cluster', async () => {
  const store = createSqliteStore({ path: one.paths.storeFile });
  await createProfileRepository(store).updateProfile('web', (profile) => profile);
  await store.close();
  const former = await startOnce(one);
  const made = await init(one);
  assert.equal(made.status, 0, made.stderr);
  assert.match(made.stderr, /profiles \(1\)/);
  assert.equal((await readStoreChoice(one.paths))?.replaces, former);
  assert.equal(await openedBy(one), url());
  const [kept = ''] = await keptStores(one);
  assert.ok(made.stderr.includes(kept), made.stderr);
  assert.equal(readEmbeddedStore(kept).cluster, former);
});

test('such a node joins a cluster by a token', async () => {
  assert.equal((await init(one)).status, 0);
  await startOnce(two);
  const joined = await two.run('gnt-cluster', ['join', '-'], { input: await issue() });
  assert.equal(joined.status, 0, joined.stderr);
  assert.equal(await openedBy(two), url());
});

test('instances are named, and neither the store nor the token is touched', async () => {
  assert.equal((await init(one)).status, 0);
  const names = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `${name}.example.com`);
  await startOnce(two, names);
  const token = await issue();
  const before = await readFile(two.paths.storeFile);
  const refused = await two.run('gnt-cluster', ['join', '-'], { input: token });
  assertRefused(refused, 2, 'CONFLICT', /: a\.example\.com, .*e\.example\.com and 1 more$/m);
  assert.match(refused.stderr, /^hint: .*gnt-backup export a\.example\.com;/m);
  const notMade = await init(two);
  assertRefused(notMade, 2, 'CONFLICT', /a\.example\.com/);
  assert.deepEqual(await readFile(two.paths.storeFile), before);
  assert.ok(!existsSync(two.paths.storeChoiceFile) && !existsSync(two.paths.clusterKeyFile));
  await rm(two.paths.storeFile);
  assert.equal((await two.run('gnt-cluster', ['join', '-'], { input: token })).status, 0);
});

test('a running gnt-noded keeps its store', async () => {
  await startOnce(one);
  const release = claimRoot(one.paths);
  try {
    assertRefused(await init(one), 2, 'CONFLICT', /gnt-noded is running/);
  } finally {
    release();
  }
  assert.ok(!existsSync(one.paths.storeChoiceFile) && !existsSync(one.paths.clusterKeyFile));
});

test('ends of jobs that are not in the embedded store yet are not written to another cluster', async () => {
  await startOnce(one);
  await mkdir(one.paths.outcomesDir);
  await writeFile(join(one.paths.outcomesDir, 'job-3.json'), '{}');
  assertRefused(await init(one), 2, 'CONFLICT', /the end of 1 job/);
  assert.ok(!existsSync(one.paths.storeChoiceFile));
});

test('after a kill between choice and renaming, the start of gnt-noded sets the store aside', async () => {
  const former = await startOnce(one);
  const bytes = await readFile(one.paths.storeFile);
  assert.equal((await init(one)).status, 0);
  for (const path of await keptStores(one)) await rm(path);
  await writeFile(one.paths.storeFile, bytes);
  assert.equal(await openedBy(one), url());
  const [kept = ''] = await keptStores(one);
  assert.equal(readEmbeddedStore(kept).cluster, former);
});

test('an embedded store that the choice does not replace stops the start of gnt-noded', async () => {
  assert.equal((await init(one)).status, 0);
  await startOnce(one);
  await assert.rejects(openedBy(one), { code: 'CONFLICT', message: /two stores/ });
  assert.ok(existsSync(one.paths.storeFile));
});
