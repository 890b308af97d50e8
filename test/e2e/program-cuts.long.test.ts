import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { Redis } from 'ioredis';
import { systemClock } from '#shared/clock/clock.ts';
import { loadClusterKeys } from '#shared/store/cluster-keys.ts';
import { openSealedRedis } from '#shared/cluster/cluster-store.ts';
import { ringOf } from '#shared/store/sealed-store.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { readClusterKey } from '#shared/store/store-choice.ts';
import { issueJoinToken } from '../../noded/cluster/membership/join-tokens.ts';
import { createClusterRepository } from '../../noded/records/cluster-repository.ts';
import { openStore } from '../../noded/records/open-store.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { armPowerCut, cutPowerOfProgram, describeUnsynced } from '../chaos/power-cut.ts';
import { settled } from '../chaos/point-scene.ts';
import { startRedis, type RedisServer } from '../noded/support/redis-server.ts';
import { succeed } from './support/ask-nodes.ts';

/**
 * Power cuts of a host while a program of a cluster runs, at each of its syncs and after its end.
 * Its output must be true, and an interrupted program can be repeated.
 */
const program = join(import.meta.dirname, '../../node_modules/.bin/gnt-cluster');
/** Above the syncs of each program. */
const MAX_SYNCS = 20;

let redis: RedisServer;
let client: Redis;
let one: Lab;
let two: Lab;
before(async () => {
  // One thread for file system calls, because syncs of several threads cannot be counted.
  process.env['UV_THREADPOOL_SIZE'] = '1';
  redis = await startRedis({ appendOnly: true });
  client = new Redis({ path: redis.socket });
  [one, two] = await Promise.all([createLab('gnt-c1'), createLab('gnt-c2')]);
});
after(async () => {
  await Promise.all([one, two].map((lab) => lab.dispose()));
  client.disconnect();
  await redis.stop();
});
beforeEach(async () => {
  await client.flushall();
  await forget(one);
});

const url = (): string => `unix:${redis.socket}`;
/** Resets a root to its state before the first program. */
const forget = ({ paths }: Lab): Promise<void> =>
  rm(join(paths.root, 'var'), { recursive: true, force: true });
const init = (): Promise<string> => succeed(one, 'gnt-cluster', 'init', '--store', url());

/** Checks that the key on the node's disk opens the records, and that the node names its store. */
async function assertMember({ paths }: Lab, after: string): Promise<void> {
  const key = await readClusterKey(paths.clusterKeyFile);
  assert.ok(key, `no key, ${after}`);
  assert.ok(existsSync(paths.storeChoiceFile), `no store, ${after}`);
  const { store, cluster } = await openSealedRedis(url(), () => ringOf(key), silentLogger);
  await store.close();
  assert.ok(cluster, `no cluster, ${after}`);
}

/**
 * @param repeat called after a cut in the middle
 * @param judge called after a success, at once or repeated
 */
async function cutAtEach(
  lab: Lab,
  prepare: () => Promise<readonly string[]>,
  repeat: (words: readonly string[]) => Promise<unknown>,
  judge: (after: string) => Promise<void>,
): Promise<void> {
  let points = 0;
  for (let when: number | null = 1; when !== null; when = when > MAX_SYNCS ? null : when + 1) {
    const words = await prepare();
    const { status, lost } = await cutPowerOfProgram(lab.paths.root, [program, ...words], when);
    const after = `${words[0]}, sync ${when}, status ${status}; ${describeUnsynced(lost)}`;
    if (status !== 0) await repeat(words);
    await judge(after);
    points += 1;
    if (status === 0) break;
  }
  assert.ok(points > 1, 'it synced nothing');
}

test('a cluster that was told as made has its key after a power cut; one that was not is made again', () =>
  cutAtEach(
    one,
    async () => {
      await client.flushall();
      await forget(one);
      return ['init', '--store', url(), 'gnt.example.com'];
    },
    (words) => succeed(one, 'gnt-cluster', ...words),
    (after) => assertMember(one, after),
  ));

test('a power cut while a common store replaces the embedded one leaves one of the two in use', () => {
  let former = '';
  return cutAtEach(
    one,
    async () => {
      await client.flushall();
      await forget(one);
      const store = createSqliteStore({ path: one.paths.storeFile });
      former = (await createClusterRepository(store, systemClock).ensure()).uuid;
      await store.close();
      return ['init', '--store', url(), 'gnt.example.com'];
    },
    async (words) => {
      const { store, common } = await openStore(one.paths, systemClock, silentLogger);
      const { uuid } = await createClusterRepository(store, systemClock).ensure();
      await store.close();
      // Before the commit point the node is unchanged.
      if (common === null) assert.equal(uuid, former);
      await succeed(one, 'gnt-cluster', ...words);
    },
    async (after) => {
      await assertMember(one, after);
      const { store, common } = await openStore(one.paths, systemClock, silentLogger);
      await store.close();
      assert.ok(common, after);
    },
  );
});

test('a node whose joining was cut off joins by the same key, or by another token, and one that joined is a member', async () => {
  await init();
  const repeatWithToken = async (): Promise<void> => {
    const common = { keys: await loadClusterKeys(one.paths) };
    const membership = { requireMember: () => undefined };
    const { token } = await issueJoinToken(600, { common, paths: one.paths, membership });
    await writeFile(join(two.paths.root, 'token'), token, { mode: 0o600 });
  };
  const words = ['join', `@${join(two.paths.root, 'token')}`];
  await cutAtEach(
    two,
    async () => {
      await forget(two);
      await repeatWithToken();
      return words;
    },
    async () => {
      const again = await two.run('gnt-cluster', words);
      if (again.status === 0) return;
      assert.match(again.stderr, /error\[(TOKEN_USED|CONFLICT)\][^]*(Print a new token: gnt-cluster join-token|[Ss]tart gnt-noded)/); // prettier-ignore
      if (again.stderr.includes('CONFLICT')) return;
      await repeatWithToken();
      await succeed(two, 'gnt-cluster', ...words);
    },
    (after) => assertMember(two, after),
  );
});

const SETTLE_MS = 30_000;
/**
 * Syncs of a renewal, whose node syncs eight times: of the new key, of the exchange, and the end.
 */
const RENEWAL_SYNCS = [2, 5, null];

test('a renewal of the key whose node loses its power goes on by itself, and leaves one key', async (t) => {
  await init();
  t.after(() => one.stopNode());
  await one.startNode();
  let former = await readFile(one.paths.clusterKeyFile, 'utf8');
  for (const when of RENEWAL_SYNCS) {
    await using power = await armPowerCut(one, when === null ? null : { thread: 'files', when });
    const { status } = await one.run('gnt-cluster', ['renew-crypto']);
    await power.letGo();
    const after = `sync ${when}, status ${status}; ${describeUnsynced(await power.cut())}`;
    assert.equal(status === 0, when === null, after);
    await one.startNode();
    const left = await settled(async () => {
      const names = await readdir(one.paths.stateDir);
      const isBegun = (await client.hlen('{gnt}:c:renewals')) > 0;
      // An unused new key may stay. The next renewal replaces it.
      const isLeft = (name: string): boolean =>
        name === 'cluster.key.before' || (name === 'cluster.key.next' && status === 0);
      return [...(isBegun ? ['a renewal'] : []), ...names.filter(isLeft)];
    }, SETTLE_MS);
    assert.deepEqual(left, [], after);
    await assertMember(one, after);
    const now = await readFile(one.paths.clusterKeyFile, 'utf8');
    if (status === 0) assert.notEqual(now, former, after);
    former = now;
  }
});

test('records that a node was told to have accepted are accepted after a power cut', async () => {
  await init();
  const { seenRecordsFile } = one.paths;
  await cutAtEach(
    one,
    async () => {
      await writeFile(seenRecordsFile, 'of before');
      return ['accept-records', '--force'];
    },
    (words) => succeed(one, 'gnt-cluster', ...words),
    async (after) => {
      const seen = existsSync(seenRecordsFile) && (await readFile(seenRecordsFile, 'utf8'));
      assert.equal(seen, false, after);
    },
  );
});
