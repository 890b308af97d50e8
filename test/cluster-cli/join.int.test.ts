import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Redis } from 'ioredis';
import { isAppError } from '#shared/errors/app-error.ts';
import { loadClusterKeys } from '#shared/store/cluster-keys.ts';
import { encodeJoinToken, makeJoinToken, parseJoinToken } from '#shared/store/join-token.ts';
import { openJoins } from '#shared/store/redis-joins.ts';
import { makeClusterKey } from '#shared/store/sealed-store.ts';
import { writeClusterKey } from '#shared/store/store-choice.ts';
import { lookUp } from '../../cluster-cli/commands/cluster/join.ts';
import { issueJoinToken } from '../../noded/cluster/membership/join-tokens.ts';
import { findSecret } from '../../scripts/demo/find-secret.ts';
import { createLab, type Lab, type ProgramResult } from '../../scripts/demo/lab.ts';
import { assertRefused } from '../e2e/support/ask-nodes.ts';
import { startRedis, type RedisServer } from '../noded/support/redis-server.ts';

/** Roots without daemons. The test creates tokens as the daemon does, and runs the real command. */
let redis: RedisServer;
let one: Lab;
let two: Lab;
let three: Lab;

before(async () => {
  redis = await startRedis({ appendOnly: true });
  [one, two, three] = await Promise.all([
    createLab('gnt-j1'),
    createLab('gnt-j2'),
    createLab('gnt-j3'),
  ]);
  const made = await one.run('gnt-cluster', ['init', '--store', url(), 'gnt.example.com']);
  assert.equal(made.status, 0, made.stderr);
});

after(async () => {
  await Promise.all([one, two, three].map((lab) => lab.dispose()));
  await redis.stop();
});

const url = (): string => `unix:${redis.socket}`;
const issue = async (lifetimeS = 600): Promise<string> => {
  const common = { keys: await loadClusterKeys(one.paths) };
  const membership = { requireMember: () => undefined };
  return (await issueJoinToken(lifetimeS, { common, paths: one.paths, membership })).token;
};
const tryJoin = (lab: Lab, ...words: string[]): Promise<ProgramResult> =>
  lab.run('gnt-cluster', ['join', ...words]);
const keyOf = (lab: Lab): Promise<string> => readFile(lab.paths.clusterKeyFile, 'utf8');
const has = (lab: Lab): boolean =>
  existsSync(lab.paths.clusterKeyFile) || existsSync(lab.paths.storeChoiceFile);

test('a token makes one root a node, of two that use it at once, and never another one', async () => {
  const token = await issue();
  await writeFile(join(two.paths.root, 'token'), `${token}\n`);
  const both = await Promise.all([
    tryJoin(two, `@${join(two.paths.root, 'token')}`),
    three.run('gnt-node', ['add', token]),
  ]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [0, 2]);
  const [joined, left] = both[0].status === 0 ? [two, three] : [three, two];
  assertRefused(both[0].status === 0 ? both[1] : both[0], 2, 'TOKEN_USED', /already used/);
  assert.equal(await keyOf(joined), await keyOf(one));
  assert.equal(
    await readFile(joined.paths.storeChoiceFile, 'utf8'),
    await readFile(one.paths.storeChoiceFile, 'utf8'),
  );
  assert.ok(!has(left));
  const told = both.map(({ stderr }) => stderr.includes('can see a token on the command line'));
  assert.deepEqual(told, [false, true]);
  assertRefused(await tryJoin(left, token), 2, 'TOKEN_USED', /already used/);
  const again = await issue();
  assertRefused(await tryJoin(joined, again), 2, 'CONFLICT', /in this cluster already/);
  assert.equal((await tryJoin(left, again)).status, 0);
  for (const lab of [two, three])
    for (const file of [lab.paths.clusterKeyFile, lab.paths.storeChoiceFile]) await rm(file);
});

test('what is refused changes nothing, and leaves the token good', async () => {
  const token = await issue();
  const parsed = parseJoinToken(token);
  assertRefused(await tryJoin(two, token.slice(0, -3)), 2, 'TOKEN_INVALID', /truncated/);
  const forged = encodeJoinToken({ ...parsed, secret: makeJoinToken(parsed).secret });
  assertRefused(await tryJoin(two, forged), 2, 'TOKEN_INVALID', /altered/);
  const longer = encodeJoinToken({ ...parsed, expiresAtMs: parsed.expiresAtMs + 60_000 });
  assertRefused(await tryJoin(two, longer), 2, 'TOKEN_INVALID', /altered/);
  const elsewhere = encodeJoinToken({ ...parsed, url: 'unix:/nowhere/redis.sock' });
  assertRefused(await tryJoin(two, elsewhere), 2, 'HOST_PREREQUISITE', /\/nowhere/);
  assert.ok(!has(two));
  await writeClusterKey(two.paths, makeClusterKey());
  assertRefused(await tryJoin(two, token), 2, 'CONFLICT', /key of another cluster/);
  await rm(two.paths.clusterKeyFile);
  await writeFile(two.paths.storeFile, 'not a database');
  assertRefused(await tryJoin(two, token), 2, 'FILE_UNREADABLE', /store\.sqlite/);
  await rm(two.paths.storeFile);
  assert.equal((await tryJoin(two, token)).status, 0);
  for (const file of [two.paths.clusterKeyFile, two.paths.storeChoiceFile]) await rm(file);
});

test('a token of a cluster that is no more in its store, or of a key that is, joins nothing', async () => {
  const keys = await loadClusterKeys(one.paths);
  const paths = one.paths;
  const membership = { requireMember: () => undefined };
  const next = makeClusterKey();
  const ring = () => ({ sealing: next, opening: [next] });
  const common = { keys: { ...keys, next: undefined, ring } };
  const { token } = await issueJoinToken(600, { common, paths, membership });
  assertRefused(await tryJoin(two, token), 2, 'STORE_KEY', /has a different key/);
  const renewing = { keys: { ...keys, ring, next } };
  await assert.rejects(issueJoinToken(600, { common: renewing, paths, membership }), (error) =>
    isAppError(error, 'CONFLICT'),
  );
  const choice = await readFile(paths.storeChoiceFile, 'utf8');
  await writeFile(
    paths.storeChoiceFile,
    choice.replace(/"cluster":"[^"]*"/, '"cluster":"0b8c4f64-7f0e-4ad4-9c66-2c4d9d9b4f11"'),
  );
  const other = await issue();
  await writeFile(paths.storeChoiceFile, choice);
  assertRefused(await tryJoin(two, other), 2, 'CONFLICT', /the token belongs to another cluster/);
  assert.ok(!has(two));
});

test('a token is expired by the clock of the store, and a host whose clock is off is told so', async () => {
  const token = parseJoinToken(await issue(10));
  await using joins = await openJoins(url());
  const now = await joins.now();
  const at = (storeMs: number, hereMs: number): Promise<unknown> =>
    lookUp({ ...joins, now: () => Promise.resolve(storeMs) }, token, hereMs);
  const isCode =
    (code: 'TOKEN_EXPIRED' | 'CLOCK_SKEW') =>
    (error: unknown): boolean =>
      isAppError(error, code);
  await at(now, now + 59_000);
  await assert.rejects(at(now, now + 61_000), isCode('CLOCK_SKEW'));
  await assert.rejects(at(now, now - 61_000), isCode('CLOCK_SKEW'));
  await assert.rejects(at(now + 10_001, now + 10_001), isCode('TOKEN_EXPIRED'));
  const client = new Redis({ path: redis.socket });
  try {
    const lifetime = await client.pttl(`{gnt}:join:${token.id}`);
    assert.ok(lifetime > 0 && lifetime <= 10_000, String(lifetime));
  } finally {
    client.disconnect();
  }
});

test('neither the key of the cluster nor the secret of a token is in Redis or its files', async () => {
  const token = await issue();
  const key = (await keyOf(one)).trim();
  const secret = Buffer.from(parseJoinToken(token).secret);
  const client = new Redis({ path: redis.socket });
  try {
    await client.save();
  } finally {
    client.disconnect();
  }
  assert.ok((await readdir(redis.directory)).length > 1);
  for (const value of [key, token, secret.toString('base64'), secret.toString('base64url')])
    assert.deepEqual(await findSecret(value, redis.directory, () => false), []);
});
