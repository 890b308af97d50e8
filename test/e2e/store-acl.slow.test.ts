import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { Redis } from 'ioredis';
import { doctorReport } from '#shared/contract/api.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import { parseStoreUrl } from '#shared/store/store-url.ts';
import { MIB } from '#shared/units/bytes.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { freePorts } from '../noded/support/free-ports.ts';
import { startRedis, type RedisServer } from '../noded/support/redis-server.ts';
import { addOs, ask, infoOf, statusOf, succeed } from './support/ask-nodes.ts';

/**
 * Nodes whose Redis only has the user of fixtures/redis/users.acl, with a replica that must confirm
 * writes.
 */
const ONE = 'node1.example.com';
const TWO = 'node2.example.com';
const NAME = 'web1.example.com';
const PASSWORD = 'of-the-nodes';
/** Users of the replica and of the test. */
const OTHERS = [
  'user admin on >admin ~* &* +@all',
  'user replica on >replica +psync +replconf +ping',
];
/** Commands that only these two use. */
const OF_OTHERS = new Set(['acl|log', 'client|kill', 'psync', 'replconf', 'ping']);
/** Commands of a login, which need no right. */
const OF_EVERYBODY = new Set(['auth', 'hello', 'quit', 'reset']);

let directory: string;
let allowed: readonly string[];
let redis: RedisServer;
let replica: RedisServer;
let admin: Redis;
let one: Lab;
let two: Lab;
let url: string;

before(async () => {
  directory = await mkdtemp('/tmp/gnt-acl-');
  const given = await readFile(join(import.meta.dirname, '../../fixtures/redis/users.acl'), 'utf8');
  allowed = [...given.matchAll(/ \+(\S+)/g)].map(([, command = '']) => command);
  const file = join(directory, 'users.acl');
  const users = given.trimEnd().replace('resetpass', `>${PASSWORD}`);
  await writeFile(file, [users, ...OTHERS, ''].join('\n'));
  const [port = 0] = await freePorts(1);
  redis = await startRedis({
    more: ['--port', String(port), '--bind', '127.0.0.1', '--aclfile', file],
  });
  const of = ['--masteruser', 'replica', '--masterauth', 'replica'];
  replica = await startRedis({ more: ['--replicaof', '127.0.0.1', String(port), ...of] });
  admin = new Redis({
    port,
    host: '127.0.0.1',
    username: 'admin',
    password: 'admin',
    disableClientInfo: true,
  });
  while (!(await admin.info('replication')).includes('state=online')) await sleep(50);
  url = `redis://gnt:${PASSWORD}@127.0.0.1:${port}`;
  [one, two] = await Promise.all([createLab('gnt-acl1'), createLab('gnt-acl2')]);
});

after(async () => {
  await Promise.all([one, two].map((lab) => lab.dispose()));
  admin.disconnect();
  await replica.stop();
  await redis.stop();
  await rm(directory, { recursive: true });
});

/**
 * Returns refused commands of nodes, except for CONFIG. Its answer contains the server's passwords,
 * so nodes lack that right and the doctor reports less.
 */
async function refusals(): Promise<readonly string[]> {
  const log = (await admin.call('ACL', 'LOG')) as unknown[][];
  const refused = log.map((entry) => String(entry[entry.indexOf('object') + 1]));
  return refused.filter((each) => each !== 'config|get');
}

test('nodes join, work and renew their key as a user who may do nothing else', async () => {
  await succeed(one, 'gnt-cluster', 'init', '--store', `${url}?replicas=1`, 'gnt.example.com');
  await one.startNode('--node', ONE);
  const token = await succeed(one, 'gnt-cluster', 'join-token');
  const joined = await two.run('gnt-cluster', ['join'], { input: token });
  assert.equal(joined.status, 0, joined.stderr);
  await two.startNode('--node', TWO);
  await addOs(two, 'quiet', ['exit 0']);
  await succeed(one, 'gnt-os', 'trust', 'quiet');
  const disks = [{ sizeBytes: 16 * MIB }];
  const parts = { osType: 'quiet', disks, nics: [], install: false, start: false };
  const create = { opcode: 'INSTANCE_CREATE', name: NAME, node: TWO, ...parts };
  assert.equal(await statusOf(one, create), 'success');
  assert.equal((await infoOf(one, NAME)).primaryNode, TWO);
  const told = await askSocket(one.paths.nodedSocket, `/v1/instances/${NAME}/disks`);
  assert.ok(told.body.includes(two.paths.disksDir), told.body);
  await succeed(one, 'gnt-cluster', 'renew-crypto');
  // Nodes look for their change logs again after a lost connection.
  await admin.call('CLIENT', 'KILL', 'USER', 'gnt');
  await succeed(two, 'gnt-instance', 'add-tags', NAME, 'seen');
  assert.match(await succeed(one, 'gnt-instance', 'list', '-o', 'tags'), /^seen$/m);
  const { findings } = await ask(one, '/v1/doctor', doctorReport);
  const store = findings.filter(({ check }) => check.startsWith('store'));
  assert.deepEqual(new Set(store.map(({ level }) => level)), new Set(['ok']), inspect(store));
  await succeed(one, 'gnt-instance', 'remove', '--force', NAME);
  assert.deepEqual(await refusals(), []);
});

test('the user is let in by a unix socket, too, and nobody without the password', async () => {
  const open = (login: string) => {
    const server = parseStoreUrl(`unix://${login}@${redis.socket}`);
    return createRedisStore({ server, logger: silentLogger });
  };
  const store = await open(`gnt:${PASSWORD}`);
  assert.equal(await store.get('a', 'nothing'), undefined);
  await store.close();
  await assert.rejects(open('gnt:wrong'), { code: 'HOST_PREREQUISITE' });
});

test('the user may do no more than nodes do, and touches no key or channel of others', async () => {
  const server = { url: `${url}/1`, replicas: 1 };
  const store = await createRedisStore({ server, logger: silentLogger });
  await store.commit([{ collection: 'a', id: 'x', expected: 'absent', value: 1 }]);
  assert.deepEqual(await store.ids('a'), ['x']);
  assert.equal((await store.list('a')).length, 1);
  await store.close();
  const told = (await admin.info('commandstats')).matchAll(/^cmdstat_(\S+):calls=([1-9]\d*),/gm);
  const used = [...told].map(([, command = '']) => command);
  const ofNodes = used.filter((each) => !OF_OTHERS.has(each) && !OF_EVERYBODY.has(each));
  assert.deepEqual(ofNodes.sort(), [...allowed].sort());
  const client = new Redis(url);
  try {
    const tries = [
      client.get('other'), client.set('other', 1), client.publish('other', 'x'), client.subscribe('other'),
      client.eval("return redis.call('GET', KEYS[1])", 1, 'other'), client.config('SET', 'dir', '/tmp'),
      client.flushall(), client.keys('*'),
    ]; // prettier-ignore
    for (const answer of await Promise.allSettled(tries)) {
      assert.equal(answer.status, 'rejected');
      assert.match(String(answer.reason), /NOPERM|No permissions/i);
    }
  } finally {
    client.disconnect();
  }
});
