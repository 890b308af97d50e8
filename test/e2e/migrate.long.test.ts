import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { jobEvent, type JobRecord } from '#shared/contract/job.ts';
import { Redis } from 'ioredis';
import { findSecret } from '../../scripts/demo/find-secret.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { killNode } from '../lab/kill-node.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { listenOnLoopback } from '../lab/listen-on-loopback.ts';
import { startRedis, type RedisServer } from '../noded/support/redis-server.ts';
import { addOs, assertRefused, infoOf, statusOf, submit, succeed } from './support/ask-nodes.ts';
import { makeTinyLinux, TINY_INIT } from '../lab/tiny-linux.ts';

/**
 * Two nodes with one real, sealed Redis, and a real guest that counts while it migrates. Each
 * number goes to its disk, and then over its channel to a service of the host, with the value of
 * its secret.
 */
const ONE = 'node1.example.com';
const DATA_ADDRESS = ['--data-address', '127.0.0.1:0'];
const TWO = 'node2.example.com';
const NAME = 'counter.example.com';
const MIB = 1024 * 1024;
const SECTOR_BYTES = 512;
const SECRET = `canary-${randomBytes(12).toString('hex')}`;
const LIMIT_MS = 120_000;
const RECEIVED_LIMIT_MS = 30_000;
let redis: RedisServer;
let one: Lab;
let two: Lab;

interface Count {
  readonly n: number;
  readonly secret: string;
  readonly atMs: number;
}
const counts: Count[] = [];
/** Messages that the guest read from its queue. */
const received: string[] = [];
/** Reads requests after the PROXY header, which identifies the guest. */
const server = createServer((socket) => {
  let text = '';
  socket.on('error', () => undefined);
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1');
    const [, message] = /GET \/\?read=([\w-]*) /.exec(text) ?? [];
    if (message !== undefined) {
      received.push(message);
      socket.end('HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    const [, n, secret = ''] = /GET \/\?n=(\d+)&secret=([\w-]*) [^]*\r\n\r\n/.exec(text) ?? [];
    if (n === undefined) return;
    counts.push({ n: Number(n), secret, atMs: performance.now() });
    socket.end('HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n');
  });
});

const INIT = `${TINY_INIT}get() {
  printf 'GET %s HTTP/1.0\\r\\nHost: 169.254.169.254\\r\\n\\r\\n' "$2" | $b nc -w 2 169.254.169.254 "$1"
}
$b ip link set lo up
$b ip link set eth0 up
$b ip link set eth1 up
$b udhcpc -i eth1 -f -q -n -t 60 -T 1 -s /lease
( while :; do
  r=$(printf 'GET /ganeti/latest/read?wait=60 HTTP/1.0\\r\\nHost: 169.254.169.254\\r\\n\\r\\n' | $b nc -w 70 169.254.169.254 80 | $b grep -o 'message-[0-9]*')
  [ -z "$r" ] || until get 8099 "/?read=$r" | $b grep -q ' 200 '; do $b sleep 1; done
done ) &
n=0
while :; do
  n=$((n+1))
  echo "$n" | $b dd of=/dev/vda bs=512 seek=$n conv=notrunc,fsync 2>/dev/null
  [ $((n % 5)) -ne 1 ] || s=$(get 80 /ganeti/latest/os/parameters.json | $b grep -o 'canary-[0-9a-f]*')
  get 8099 "/?n=$n&secret=$s" >/dev/null
done
`;

before(async () => {
  redis = await startRedis({ appendOnly: true });
  [one, two] = await Promise.all([createLab('gnt-mg1'), createLab('gnt-mg2')]);
  const url = `unix:${redis.socket}`;
  await succeed(one, 'gnt-cluster', 'init', '--store', url, 'gnt.example.com');
  await succeed(
    two,
    'gnt-cluster',
    'init',
    '--store',
    url,
    '--cluster-key',
    one.paths.clusterKeyFile,
  );
  const { status, stderr } = await one.run('gnt-appliance', ['build']);
  assert.equal(status, 0, stderr);
  await Promise.all([
    one.startNode('--node', ONE, ...DATA_ADDRESS),
    two.startNode('--node', TWO, ...DATA_ADDRESS),
  ]);
  for (const lab of [one, two]) await addOs(lab, 'both', ['exit 0']);
  await succeed(one, 'gnt-os', 'trust', 'both');
  const port = await listenOnLoopback(server);
  await succeed(one, 'gnt-cluster', 'modify', '--expose-service', `counter=8099:127.0.0.1:${port}`);
  await startCounter();
});

after(async () => {
  await submit(one, { opcode: 'INSTANCE_REMOVE', name: NAME, shutdownTimeoutS: 0 });
  await Promise.all([one.stopNode(), two.stopNode()]);
  server.close();
  const leftovers = [...(await one.findLeftovers()), ...(await two.findLeftovers())];
  await Promise.all([one.dispose(), two.dispose()]);
  await redis.stop();
  assert.deepEqual(leftovers, []);
});

async function startCounter(): Promise<void> {
  const { kernel, initrd } = await makeTinyLinux(one, 'counter.img', INIT);
  const made = await submit(one, {
    ...{ opcode: 'INSTANCE_CREATE', name: NAME, node: ONE, install: false, start: false },
    ...{ nics: [{ mode: 'user' }], communication: true, osType: 'both' },
    ...{ disks: [{ sizeBytes: 64 * MIB }], beparams: { memoryMiB: 128, vcpus: 1 } },
    hvparams: {
      accel: 'tcg',
      kernel_path: kernel,
      initrd_path: initrd,
      kernel_args: 'console=ttyS0 quiet',
    },
  });
  assert.equal(made.error, null, JSON.stringify(made.error));
  const secrets = { osParametersSecret: { 'api-key': SECRET } };
  assert.equal(
    await statusOf(one, { opcode: 'INSTANCE_STARTUP', name: NAME, ...secrets }),
    'success',
  );
  await untilCounted(5);
}

const last = (): Count => counts.at(-1) ?? { n: 0, secret: '', atMs: 0 };

/** Waits until the guest has counted further. */
async function untilCounted(further: number): Promise<void> {
  const wanted = last().n + further;
  const deadlineMs = performance.now() + LIMIT_MS;
  while (last().n < wanted) {
    assert.ok(performance.now() < deadlineMs, `it does not count beyond ${last().n}`);
    await sleep(20);
  }
}

/**
 * Sends a message to the guest. A guest that still waited at its old node would not receive it for
 * a minute.
 */
async function untilReceived(lab: Lab, message: string): Promise<void> {
  const path = `/v1/instances/${NAME}/queue`;
  const sent = await askSocket(lab.paths.nodedSocket, path, { method: 'POST', body: message });
  assert.equal(sent.status, 204, sent.body);
  const deadlineMs = performance.now() + RECEIVED_LIMIT_MS;
  while (!received.includes(message)) {
    assert.ok(performance.now() < deadlineMs, `the guest does not read ${message}`);
    await sleep(20);
  }
}

/** Checks that the count never decreases, and that each request read the secret again. */
function assertCounted(): void {
  for (const [index, { n }] of counts.entries())
    assert.ok(n > (counts[index - 1]?.n ?? 0), `${n} after ${counts[index - 1]?.n ?? 0}`);
  // A request in progress during the migration is lost and repeated.
  for (const { secret } of counts) assert.ok(['', SECRET].includes(secret), secret);
  assert.equal(last().secret, SECRET);
}

function longestGapMs(from: number): number {
  const times = counts.slice(Math.max(0, from - 1)).map(({ atMs }) => atMs);
  return Math.max(...times.slice(1).map((atMs, index) => atMs - (times[index] ?? 0)));
}

async function begin(node: string, by = one): Promise<number> {
  const body = { opcode: 'INSTANCE_MIGRATE', name: NAME, node };
  const answer = await askSocket(by.paths.nodedSocket, '/v1/jobs', { method: 'POST', body });
  assert.equal(answer.status, 202, answer.body);
  return (JSON.parse(answer.body) as { id: number }).id;
}

async function endOf(lab: Lab, id: number): Promise<JobRecord> {
  const { body } = await askSocket(lab.paths.nodedSocket, `/v1/jobs/${id}/events`);
  const end = jobEvent.parse(JSON.parse(body.trim().split('\n').at(-1) ?? ''));
  assert.ok(end.type === 'end', body);
  return end.job;
}

/** Checks that it runs on one node with its disk, and that the other node has no part of it. */
async function assertOnlyOn(node: string): Promise<void> {
  const { uuid, primaryNode, running } = await infoOf(one, NAME);
  assert.equal(primaryNode, node);
  assert.ok(running !== null);
  for (const [lab, name] of [
    [one, ONE],
    [two, TWO],
  ] as const) {
    const wanted = name === node ? [uuid] : [];
    const found = async (): Promise<unknown> => ({
      disks: (await readdir(lab.paths.disksDir)).filter((entry) => entry.includes(uuid)),
      machines: await readdir(lab.paths.vmDir).catch(() => []),
    });
    const expected = { disks: wanted, machines: wanted };
    const deadlineMs = performance.now() + LIMIT_MS;
    while (JSON.stringify(await found()) !== JSON.stringify(expected)) {
      assert.ok(performance.now() < deadlineMs, `${name}: ${JSON.stringify(await found())}`);
      await sleep(100);
    }
  }
}

test('a guest goes on counting while it goes to another node and back, with its secret', async (t) => {
  const before = await infoOf(one, NAME);
  for (const [node, by, rate] of [
    [TWO, one, 'none'],
    [ONE, two, '16M'],
  ] as const) {
    const from = counts.length;
    const beganMs = performance.now();
    const { stderr } = await by.run('gnt-instance', [
      ...['migrate', '-n', node, '--data-rate', rate, 'counter'],
    ]);
    assert.match(stderr, /instance counter migrated/, stderr);
    const tookMs = performance.now() - beganMs;
    await untilReceived(by, `message-${from}`);
    await untilCounted(20);
    assertCounted();
    t.diagnostic(
      `to ${node}: ${Math.round(tookMs)} ms, longest gap ${Math.round(longestGapMs(from))} ms, ${/paused for \d+ ms/.exec(stderr)?.[0] ?? ''}`,
    );
    await assertOnlyOn(node);
    const info = await infoOf(by, NAME);
    assert.deepEqual([info.instanceId, info.channel], [before.instanceId, before.channel]);
  }
});

test('refused by name, and the guest goes on where it is', async () => {
  const migrate = async (...words: string[]) => one.run('gnt-instance', ['migrate', ...words]);
  assertRefused(await migrate('-n', ONE, 'counter'), 2, 'INSTANCE_STATE', /already on node/);
  await succeed(one, 'gnt-node', 'modify', '--drained', 'yes', TWO);
  assertRefused(await migrate('-n', TWO, 'counter'), 2, 'NODE_DRAINED', /node2/);
  await succeed(one, 'gnt-node', 'modify', '--drained', 'no', TWO);
  await assertOnlyOn(ONE);
});

test('its disk has what it wrote, and its secret is nowhere but in memory', async () => {
  const { uuid } = await infoOf(one, NAME);
  const lab = one;
  const seen = counts.map(({ n }) => n);
  const disk = await readFile(join(lab.paths.disksDir, uuid, 'disk0.raw'));
  for (const n of seen) {
    const sector = disk.subarray(n * SECTOR_BYTES, (n + 1) * SECTOR_BYTES).toString('latin1');
    assert.equal(Number.parseInt(sector, 10), n);
  }
  for (const each of [one, two])
    assert.deepEqual(await findSecret(SECRET, each.paths.root, () => false), []);
  const client = new Redis({ path: redis.socket });
  await client.call('BGREWRITEAOF');
  assert.deepEqual(await findSecret(SECRET, dirname(redis.socket), () => false), []);
  client.disconnect();
});

async function untilArriving(): Promise<void> {
  const { uuid } = await infoOf(one, NAME);
  for (;;) {
    const found = await readdir(two.paths.vmDir).catch((): string[] => []);
    if (found.includes(uuid)) return;
    await sleep(10);
  }
}

test('a cancelled migration leaves the guest where it is', async () => {
  const id = await begin(TWO);
  await untilArriving();
  await succeed(one, 'gnt-job', 'cancel', String(id));
  assert.equal((await endOf(one, id)).status, 'canceled');
  await untilCounted(5);
  await assertOnlyOn(ONE);
  assertCounted();
});

test('a target that is killed has nothing afterwards, and the guest goes on', async () => {
  const id = await begin(TWO);
  await untilArriving();
  await killNode(two);
  await two.startNode('--node', TWO, ...DATA_ADDRESS);
  assert.equal((await endOf(one, id)).status, 'error');
  await untilCounted(5);
  await assertOnlyOn(ONE);
  assertCounted();
});

test('a source that is killed at any moment leaves the guest on exactly one node', async (t) => {
  for (const waitMs of [0, 1500, 3000]) {
    await begin(TWO);
    await untilArriving();
    await sleep(waitMs);
    await killNode(one);
    await one.startNode('--node', ONE, ...DATA_ADDRESS);
    await untilCounted(5);
    const { primaryNode } = await infoOf(one, NAME);
    t.diagnostic(`killed after ${waitMs} ms: on ${primaryNode}`);
    await assertOnlyOn(primaryNode);
    assertCounted();
    if (primaryNode === TWO)
      assert.equal(
        await statusOf(two, { opcode: 'INSTANCE_MIGRATE', name: NAME, node: ONE }),
        'success',
      );
  }
});
