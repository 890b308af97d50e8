import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRootPaths } from '#shared/paths/root-paths.ts';
import { fingerprintOf, loadClusterKeys, type ClusterKeys } from '#shared/store/cluster-keys.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import {
  createSealedStore,
  makeClusterKey,
  ringOf,
  type SealedStore,
} from '#shared/store/sealed-store.ts';
import type { Store } from '#shared/store/store.ts';
import type { KeyStep } from '#shared/contract/api.ts';
import { takeKeyStep } from '../../../../noded/cluster/membership/start-cluster-key.ts';
import { KeyRenewal } from '../../../../noded/cluster/membership/renew-key.ts';
import { startRedis, type RedisServer } from '../../support/redis-server.ts';

/** Nodes of one cluster over one real Redis, with key files of their own, without daemons. */
const directory = mkdtempSync(join(tmpdir(), 'gnt-renew-'));
let server: RedisServer;
let redis: Redis;
let count = 0;
before(async () => {
  server = await startRedis();
  redis = new Redis({ path: server.socket });
});
after(async () => {
  redis.disconnect();
  await server.stop();
  rmSync(directory, { recursive: true });
});

/** A crash of the node that renews. */
class Crash extends Error {}

class Node {
  readonly name: string;
  readonly #cluster: Cluster;
  readonly paths;
  keys!: ClusterKeys;
  store!: SealedStore;
  renewal!: KeyRenewal;
  isUp = true;

  constructor(name: string, cluster: Cluster) {
    this.name = name;
    this.#cluster = cluster;
    this.paths = createRootPaths(join(directory, `${cluster.prefix}-${name}`));
  }

  /** Starts like a daemon, from the files on its disk. */
  async start(): Promise<void> {
    const cluster = this.#cluster;
    this.keys = await loadClusterKeys(this.paths);
    this.store = createSealedStore(await cluster.openPlain(), () => this.keys.ring());
    const crashing = <T extends object>(target: T): T =>
      new Proxy(target, {
        get: (_, name) => {
          // Its methods have no this but closures.
          const found = Reflect.get(target, name) as unknown;
          if (!['commit', 'reseal', 'learn', 'sealWith', 'forgetOthers'].includes(String(name)))
            return found;
          return async (...args: unknown[]) => {
            cluster.mayCrash();
            const result = await (found as (...args: unknown[]) => Promise<unknown>)(...args);
            cluster.mayCrash();
            return result;
          };
        },
      });
    this.renewal = new KeyRenewal({
      nodeName: this.name,
      store: crashing(this.store),
      keys: crashing(this.keys),
      nodeNames: async () => cluster.nodes.map(({ name }) => name),
      answers: async (node) => cluster.node(node).isUp,
      tell: async (node, step) => {
        cluster.mayCrash();
        await cluster.tell(node, step);
        await cluster.check();
        cluster.mayCrash();
      },
      logger: silentLogger,
      retryMs: 5,
    });
  }

  async stop(): Promise<void> {
    await this.renewal.stop();
    await this.store.close();
  }
}

class Cluster {
  readonly prefix: string;
  nodes: Node[] = [];
  readonly firstKey = makeClusterKey();
  /** Of the moments in which the renewing node may crash: undefined is never. */
  crashAt: number | undefined;
  moments = 0;

  constructor() {
    count += 1;
    this.prefix = `{renew${count}}`;
  }

  static async of(...names: string[]): Promise<Cluster> {
    const cluster = new Cluster();
    cluster.nodes = names.map((name) => new Node(name, cluster));
    for (const { paths } of cluster.nodes) {
      await mkdir(paths.stateDir, { recursive: true });
      const text = `${Buffer.from(cluster.firstKey).toString('base64')}\n`;
      await writeFile(paths.clusterKeyFile, text, { mode: 0o600 });
    }
    for (const node of cluster.nodes) await node.start();
    const [first] = cluster.nodes;
    for (const [collection, id] of RECORDS)
      await first?.store.commit([{ collection, id, expected: 'absent', value: { of: id } }]);
    return cluster;
  }

  openPlain(): Promise<Store> {
    const { prefix } = this;
    return createRedisStore({
      server: { url: `unix:${server.socket}` },
      prefix,
      logger: silentLogger,
    });
  }

  node(name: string): Node {
    const found = this.nodes.find((node) => node.name === name);
    assert.ok(found);
    return found;
  }

  mayCrash(): void {
    this.moments += 1;
    if (this.moments === this.crashAt) throw new Crash(`at ${this.moments}`);
  }

  async tell(name: string, step: KeyStep): Promise<void> {
    const node = this.nodes.find((each) => each.name === name);
    if (node === undefined) throw new AppError('NODE_NOT_FOUND', `there is no node '${name}'`);
    const { isUp, keys, store } = node;
    if (!isUp) throw new AppError('NODE_UNREACHABLE', `node '${name}' does not answer`);
    await takeKeyStep(step, keys, store);
  }

  /** Each node that runs reads what each of them writes. */
  async check(): Promise<void> {
    const running = this.nodes.filter(({ isUp }) => isUp);
    for (const { name, store } of running)
      await store.commit([{ collection: 'marks', id: name, expected: 'any', value: name }]);
    for (const { store } of running) {
      for (const { name } of running) assert.equal((await store.get('marks', name))?.value, name);
      for (const [collection, id] of RECORDS)
        assert.deepEqual((await store.get(collection, id))?.value, { of: id });
    }
  }

  /** @returns how many records of the store a key opens */
  async openedWith(key: Uint8Array): Promise<number> {
    const plain = await this.openPlain();
    const sealed = createSealedStore(plain, () => ringOf(key));
    const listed = await Promise.all(
      ((await plain.collections?.()) ?? []).map((collection) => sealed.list(collection)),
    );
    await sealed.close();
    return listed.flat().filter(({ problem }) => problem === undefined).length;
  }

  async assertRenewed(): Promise<void> {
    await this.check();
    const keys = this.nodes.filter(({ isUp }) => isUp).map(({ keys }) => keys.ring());
    const prints = new Set(keys.map(({ sealing }) => fingerprintOf(sealing)));
    assert.equal(prints.size, 1);
    assert.ok(!prints.has(fingerprintOf(this.firstKey)));
    for (const { opening } of keys) assert.equal(opening.length, 1);
    assert.equal(await this.openedWith(this.firstKey), 0);
    for (const { paths } of this.nodes.filter(({ isUp }) => isUp)) {
      assert.deepEqual(readdirSync(paths.stateDir), ['cluster.key']);
      assert.equal(statSync(paths.clusterKeyFile).mode & 0o777, 0o600);
    }
  }

  async stop(): Promise<void> {
    for (const node of this.nodes) await node.stop();
  }
}

async function untilDone(renewal: KeyRenewal, when: string): Promise<void> {
  const deadline = performance.now() + 20_000;
  while ((await renewal.describe()) !== null) assert.ok(performance.now() < deadline, when);
}

const RECORDS = [
  ['instances', 'i1'],
  ['instances', 'i2'],
  ['jobs', '1'],
  ['claim-name', 'web1'],
] as const;

test('every node gets a new key, every record is sealed with it, and the old one opens nothing', async () => {
  const cluster = await Cluster.of('a', 'b', 'c');
  assert.equal(await cluster.openedWith(cluster.firstKey), 4);
  assert.deepEqual(await cluster.node('a').renewal.renew([]), {
    nodes: ['a', 'b', 'c'],
    skipped: [],
  });
  await cluster.assertRenewed();
  assert.equal(await cluster.node('b').renewal.describe(), null);
  const { sealing } = cluster.node('a').keys.ring();
  await cluster.node('b').renewal.renew([]);
  await cluster.assertRenewed();
  assert.equal(await cluster.openedWith(sealing), 0);
  await cluster.stop();
});

test('a node that crashes at any moment of a renewal goes on with it at its next start, and no node ever misses a record', async () => {
  for (let at = 1; ; at += 1) {
    const cluster = await Cluster.of('a', 'b', 'c');
    cluster.crashAt = at;
    const a = cluster.node('a');
    const isWhole = await a.renewal.renew([]).then(
      () => true,
      (error: unknown) => {
        assert.ok(error instanceof Crash, String(error));
        return false;
      },
    );
    if (isWhole) {
      assert.ok(at > 20, `${at} moments`);
      await cluster.stop();
      return;
    }
    cluster.crashAt = undefined;
    await a.stop();
    await a.start();
    await cluster.check();
    a.renewal.resume();
    await untilDone(a.renewal, `crashed at ${at}`);
    await cluster.check();
    // Before it was on record, nothing had begun: a new one takes its place.
    if ((await cluster.openedWith(cluster.firstKey)) > 0) await a.renewal.renew([]);
    await a.renewal.stop();
    await cluster.assertRenewed();
    await cluster.stop();
  }
});

test('a node that does not answer is named, and nothing begins; left behind it reads nothing until it joins anew', async () => {
  const cluster = await Cluster.of('a', 'b', 'c');
  const [a, c] = [cluster.node('a'), cluster.node('c')];
  await assert.rejects(a.renewal.renew(['b']), { code: 'CONFLICT' });
  await assert.rejects(a.renewal.renew(['x']), { code: 'NODE_NOT_FOUND' });
  c.isUp = false;
  await assert.rejects(a.renewal.renew([]), {
    code: 'NODE_UNREACHABLE',
    message: 'these nodes do not answer: c',
  });
  assert.equal(await a.renewal.describe(), null);
  assert.deepEqual(readdirSync(a.paths.stateDir), ['cluster.key']);
  assert.deepEqual(await a.renewal.renew(['c']), { nodes: ['a', 'b'], skipped: ['c'] });
  await cluster.assertRenewed();
  await assert.rejects(c.store.get('jobs', '1'), { code: 'STORE_KEY' });
  await cluster.stop();
});

/** Renews without c. Retries while a resumed renewal runs. */
async function renewBeside(renewal: KeyRenewal): Promise<void> {
  for (let tries = 100; ; tries--) {
    try {
      await renewal.renew(['c']);
      return;
    } catch (error) {
      if (tries === 0 || !(error instanceof AppError && error.code === 'CONFLICT')) throw error;
      await sleep(20);
    }
  }
}

test('a node that goes away in the middle is waited for; then it is there, or removed', async () => {
  for (const outcome of ['back', 'removed', 'skipped'] as const) {
    const cluster = await Cluster.of('a', 'b', 'c');
    const [a, b, c] = ['a', 'b', 'c'].map((name) => cluster.node(name));
    assert.ok(a && b && c);
    const told = cluster.tell.bind(cluster);
    cluster.tell = async (name, step) => {
      if (name === 'c' && step.step === 'seal') c.isUp = outcome === 'back' && b.isUp === false;
      await told(name, step);
    };
    await assert.rejects(a.renewal.renew([]), { code: 'NODE_UNREACHABLE' });
    cluster.tell = told;
    assert.match((await a.renewal.describe()) ?? '', /^a renews the cluster key \(seal\)/);
    await cluster.check();
    await assert.rejects(b.renewal.renew([]), { code: 'CONFLICT' });
    if (outcome === 'back') c.isUp = true;
    if (outcome === 'removed') cluster.nodes = [a, b];
    if (outcome === 'skipped') await renewBeside(a.renewal);
    await untilDone(a.renewal, outcome);
    await a.renewal.stop();
    await cluster.assertRenewed();
    cluster.nodes = [a, b, c];
    await cluster.stop();
  }
});

test('when the node that began it is gone for good, another one goes on', async () => {
  for (const at of [2, 8, 14, 20, 24]) {
    const cluster = await Cluster.of('a', 'b', 'c');
    const [a, b, c] = ['a', 'b', 'c'].map((name) => cluster.node(name));
    assert.ok(a && b && c);
    cluster.crashAt = at;
    await assert.rejects(a.renewal.renew([]), Crash);
    cluster.crashAt = undefined;
    await a.stop();
    a.isUp = false;
    cluster.nodes = [b, c];
    await b.renewal.renew([]);
    await cluster.assertRenewed();
    await cluster.stop();
  }
});
