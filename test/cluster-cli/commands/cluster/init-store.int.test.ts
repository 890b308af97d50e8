import assert from 'node:assert/strict';
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Redis } from 'ioredis';
import { makeClusterKey } from '#shared/store/sealed-store.ts';
import { readStoreChoice, writeClusterKey, writeStoreChoice } from '#shared/store/store-choice.ts';
import { findCommonStore, keepKey } from '../../../../cluster-cli/commands/cluster/init-store.ts';
import { createLab, type Lab } from '../../../../scripts/demo/lab.ts';
import { startRedis, type RedisServer } from '../../../noded/support/redis-server.ts';
import { runInProcess } from '../../support/run-in-process.ts';

/** Roots without daemons: one has made a cluster in a store. */
let redis: RedisServer;
let empty: RedisServer;
let one: Lab;
let two: Lab;

const url = (server = redis): string => `unix:${server.socket}`;
const init = (lab: Lab, ...words: readonly string[]) =>
  runInProcess('gnt-cluster', ['init', '--store', ...words], { root: lab.paths.root });
const keyOf = (lab: Lab): Promise<string> => readFile(lab.paths.clusterKeyFile, 'utf8');

before(async () => {
  [redis, empty] = await Promise.all([startRedis({ appendOnly: true }), startRedis()]);
  [one, two] = await Promise.all([createLab('gnt-i1'), createLab('gnt-i2')]);
  assert.equal(await findCommonStore(one.paths), null);
  const { status, stderr } = await init(one, url(), 'gnt.example.com');
  assert.equal(status, 0, stderr);
  assert.match(stderr, /^cluster gnt\.example\.com created in /m);
  assert.match(stderr, /other nodes join with a copy of .*cluster\.key/);
});

after(async () => {
  await Promise.all([one, two].map((lab) => lab.dispose()));
  await Promise.all([redis, empty].map((server) => server.stop()));
});

async function withoutKey(lab: Lab): Promise<void> {
  await rm(lab.paths.clusterKeyFile, { force: true });
  await rm(lab.paths.storeChoiceFile, { force: true });
}

test('an interrupted call is repeated with the key that it has written', async () => {
  const [key, choice] = [await keyOf(one), await readStoreChoice(one.paths)];
  await rm(one.paths.storeChoiceFile);
  const { status, stderr } = await init(one, url());
  assert.equal(status, 0, stderr);
  assert.match(stderr, /this node joined cluster gnt\.example\.com/);
  assert.equal(await keyOf(one), key);
  assert.equal((await readStoreChoice(one.paths))?.cluster, choice?.cluster);
  assert.equal(await findCommonStore(one.paths), url());
});

for (const [what, words, code, message] of [
  ['a name that is none', () => [url(empty), 'a b'], 'USAGE', /'a b' is not a valid name/],
  ['a cluster without its key', () => [url()], 'STORE_KEY', /already contains a cluster/],
  [
    'a missing key file',
    () => [url(), '--cluster-key', '/nonexistent/key'],
    ...(['FILE_UNREADABLE', /--cluster-key: \/nonexistent\/key does not exist/] as const),
  ],
  [
    'another name than that of the cluster',
    () => [url(), '--cluster-key', one.paths.clusterKeyFile, 'other.example.com'],
    ...(['CONFLICT', /contains cluster gnt\.example\.com, not other\.example\.com/] as const),
  ],
  [
    'a key for an empty store',
    () => [url(empty), '--cluster-key', one.paths.clusterKeyFile],
    ...(['CONFLICT', /contains no cluster to join/] as const),
  ],
] as const) {
  test(`${what} is refused, and no file is written`, async () => {
    await withoutKey(two);
    const { status, stderr } = await init(two, ...words());
    assert.equal(status, 2, stderr);
    assert.match(stderr, new RegExp(`^error\\[${code}\\]`, 'm'));
    assert.match(stderr, message);
    assert.equal(await readStoreChoice(two.paths), undefined);
    await assert.rejects(keyOf(two), { code: 'ENOENT' });
  });
}

test('a store that evicts records is refused for a new cluster', async () => {
  await withoutKey(two);
  const client = new Redis(empty.socket);
  await client.config('SET', 'maxmemory', '100mb');
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  try {
    const { status, stderr } = await init(two, url(empty));
    assert.equal(status, 2, stderr);
    assert.match(stderr, /HOST_PREREQUISITE.*is not safe for a cluster/);
    assert.equal(await readStoreChoice(two.paths), undefined);
  } finally {
    await client.config('SET', 'maxmemory-policy', 'noeviction');
    client.disconnect();
  }
});

test('a key joins the cluster of the store by its own name', async () => {
  await withoutKey(two);
  const key = join(two.paths.root, 'key');
  await copyFile(one.paths.clusterKeyFile, key);
  const { status, stderr } = await init(two, url(), '--cluster-key', key, 'gnt.example.com');
  assert.equal(status, 0, stderr);
  assert.match(stderr, /this node joined cluster gnt\.example\.com/);
  assert.equal(await keyOf(two), await keyOf(one));
  assert.equal(await findCommonStore(two.paths), url());
});

const CLUSTER = '11111111-1111-4111-8111-111111111111';
const STRANGER = '22222222-2222-4222-8222-222222222222';
for (const [what, has, chosen, cluster, expected] of [
  ['no key before', null, null, CLUSTER, ['called', 'new']],
  ['the same key', 'new', null, CLUSTER, ['called', 'new']],
  ['an older key of the same cluster', 'old', CLUSTER, CLUSTER, ['called', 'new']],
  ['a key of another cluster', 'old', STRANGER, CLUSTER, ['refused', 'old']],
  ['a key and no choice', 'old', null, CLUSTER, ['refused', 'old']],
  ['a key and a store without a cluster', 'old', CLUSTER, undefined, ['refused', 'old']],
] as const) {
  test(`a root with ${what} ends with the key: ${expected[1]}`, async () => {
    await withoutKey(two);
    const keys = { old: makeClusterKey(), new: makeClusterKey() };
    if (has !== null) await writeClusterKey(two.paths, keys[has]);
    if (chosen !== null) await writeStoreChoice(two.paths, { url: url(), cluster: chosen });
    let isCalled = false;
    const keeping = keepKey(two.paths, keys.new, cluster, {
      before: async () => {
        isCalled = true;
        return Promise.resolve();
      },
    });
    if (expected[0] === 'refused')
      await assert.rejects(keeping, { code: 'CONFLICT', message: /the key of another cluster/ });
    else await keeping;
    assert.equal(isCalled, expected[0] === 'called');
    const text = Buffer.from(keys[expected[1]]).toString('base64');
    assert.equal(await keyOf(two), `${text}\n`);
  });
}

test('a choice that is no choice is refused without its text', async () => {
  await withoutKey(two);
  await writeFile(two.paths.storeChoiceFile, '{"url":"redis://:hunter2@host"}');
  await assert.rejects(
    findCommonStore(two.paths),
    (error: Error) => /cannot use/.test(error.message) && !error.message.includes('hunter2'),
  );
});
