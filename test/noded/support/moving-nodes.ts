import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, open, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/clock/clock.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import {
  arrivalBegun,
  arrivalDigests,
  arrivalEnded,
  arrivalRequest,
} from '#shared/contract/move.ts';
import { NO_FLAGS } from '#shared/contract/node-flags.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import { createSealedStore, makeClusterKey, ringOf } from '#shared/store/sealed-store.ts';
import type { Store } from '#shared/store/store.ts';
import type { MigrationTargetClient } from '../../../noded/cluster/migration/migration-target-client.ts';
import type { MigrationTarget } from '../../../noded/cluster/migration/migration-target-contract.ts';
import { createMigrationTarget } from '../../../noded/cluster/migration/migration-target.ts';
import type { ExpectGuest } from '../../../noded/cluster/migration/incoming-guest.ts';
import { moveInstance } from '../../../noded/cluster/migration/move-instance.ts';
import {
  bringBack,
  createCopySweeper,
  createDepartureSweeper,
  isOwnForGood,
  returnDepartures,
} from '../../../noded/cluster/migration/settle-moves.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import type { InstanceDisks } from '../../../noded/storage/instance-disks.ts';
import { createMovingDisks, type MovingDisks } from '../../../noded/storage/moving-disks.ts';
import { planNewInstance } from '../../../noded/instances/record/plan-record.ts';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import {
  createInstanceRepository,
  type InstanceRepository,
} from '../../../noded/records/instance-repository.ts';
import { ManualClock } from './manual-clock.ts';
import { createOpcode } from './opcodes.ts';
import { startRedis, type RedisServer } from './redis-server.ts';

export const MIB = 1024 * 1024;
export const SOURCE = 'node1.example.com';
export const TARGET = 'node2.example.com';

/** Nothing runs on these nodes. */
const noGuest = (): Promise<never> => Promise.reject(new Error('no machine runs here'));

/** Thrown by each step that a killed daemon no longer carries out. */
export class Killed extends Error {}

/** One daemon of a node. Once it is killed, its parts do nothing. */
class Life {
  isOver = false;
  steps = 0;
  killAt = Number.POSITIVE_INFINITY;

  /** Each call of a part is two moments: before it, and after it. */
  moment(): void {
    if (!this.isOver && (this.steps += 1) >= this.killAt) this.isOver = true;
    if (this.isOver) throw new Killed();
  }

  wrap<T extends object>(part: T, names: readonly string[]): T {
    return new Proxy(part, {
      get: (_, name) => {
        // Its methods have no this but closures, or are bound here.
        const found = Reflect.get(part, name) as unknown;
        if (typeof found !== 'function' || name === 'then') return found;
        const call = found.bind(part) as (...args: unknown[]) => unknown;
        if (!names.includes(String(name))) return call;
        return async (...args: unknown[]) => {
          this.moment();
          const result = await call(...args);
          this.moment();
          return result;
        };
      },
    });
  }
}

/**
 * Nodes with folders of their own over one real, sealed Redis; daemons are started and killed here.
 */
export class MovingNodes implements AsyncDisposable {
  readonly redis: RedisServer;
  readonly directory: string;
  readonly #key = makeClusterKey();
  readonly #stores: Store[] = [];

  private constructor(redis: RedisServer, directory: string) {
    this.redis = redis;
    this.directory = directory;
  }

  static async start(): Promise<MovingNodes> {
    return new MovingNodes(await startRedis(), await mkdtemp(join(tmpdir(), 'gnt-moving-')));
  }

  async openStore(): Promise<Store> {
    const options = { server: { url: `unix:${this.redis.socket}` }, logger: silentLogger };
    const store = createSealedStore(await createRedisStore(options), () => ringOf(this.#key));
    this.#stores.push(store);
    return store;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const store of this.#stores) await store.close();
    await this.redis.stop();
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** A node. The content of its disk outlives its daemons. */
export class MovingNode implements AsyncDisposable {
  readonly name: string;
  readonly disksDir: string;
  readonly #store: Store;
  life!: Life;
  instances!: InstanceRepository;
  disks!: InstanceDisks;
  moving!: MovingDisks;
  migrationTarget!: MigrationTarget;
  admitted = 0;
  /** Nodes that it can ask. */
  others: readonly MovingNode[] = [];
  readonly clock = new ManualClock(0);
  #sweepCopies!: () => Promise<void>;
  #sweepDepartures!: () => Promise<void>;
  /** Resources that the kernel would close for a killed process. */
  #opened = new AsyncDisposableStack();

  private constructor(name: string, disksDir: string, store: Store) {
    this.name = name;
    this.disksDir = disksDir;
    this.#store = store;
  }

  static async create(name: string, disksDir: string, store: Store): Promise<MovingNode> {
    await mkdir(disksDir, { recursive: true });
    const node = new MovingNode(name, disksDir, store);
    await node.startDaemon();
    return node;
  }

  readonly owns = (node: string): boolean => node === this.name;

  /** @param store a misbehaving store, in place of its own */
  async startDaemon(killAt = Number.POSITIVE_INFINITY, store = this.#store): Promise<void> {
    await this.#opened.disposeAsync();
    this.#opened = new AsyncDisposableStack();
    const life = new Life();
    life.killAt = killAt;
    this.life = life;
    this.admitted = 0;
    const repository = createInstanceRepository(
      store,
      systemClock,
      createRecordProblems(silentLogger),
    );
    this.instances = life.wrap(repository, ['findByUuid', 'update']);
    const disks = createInstanceDisks(this.disksDir, {
      bringBack: (uuid) => bringBack(uuid, this.parts),
    });
    this.disks = life.wrap(disks, ['settleCopy']);
    const moving = createMovingDisks(this.disksDir, disks);
    this.moving = life.wrap(
      {
        ...moving,
        depart: async (instance: InstanceRecord) =>
          life.wrap(this.#opened.use(await moving.depart(instance)), ['leave']),
        arrive: async (...given: Parameters<MovingDisks['arrive']>) =>
          life.wrap(this.#opened.use(await moving.arrive(...given)), ['write', 'verify']),
      },
      ['depart', 'comeBack', 'removeLeft', 'arrive'],
    );
    this.#sweepCopies = createCopySweeper(this.parts);
    this.#sweepDepartures = createDepartureSweeper({ ...this.parts, clock: this.clock });
    this.openMigrationTarget();
  }

  /** Of the parts as they are now. */
  openMigrationTarget(expectGuest: ExpectGuest = noGuest): void {
    this.migrationTarget = createMigrationTarget({
      ...this.parts,
      membership: { requireMember: () => undefined },
      nodes: { flagsOf: () => Promise.resolve(NO_FLAGS) },
      room: {
        admit: (_wanted, judging) => {
          if (judging?.isArrival !== true) throw new Error('it is judged as if it were new');
          this.admitted += 1;
          return Promise.resolve({
            becomes: () => undefined,
            withdraw: () => (this.admitted -= 1),
          });
        },
      },
      checkHere: () => Promise.resolve(),
      checkMachine: () => Promise.resolve(),
      expectGuest,
    });
  }

  get parts() {
    const { name: nodeName, owns, instances, disks, moving } = this;
    const isTaken = async (node: string, uuid: string): Promise<boolean> => {
      const owner = this.others.find((other) => other.name === node);
      if (owner === undefined) throw new AppError('NODE_UNREACHABLE', `${node} is gone`);
      return (await owner.client().end(uuid, AbortSignal.timeout(10_000))).isTaken;
    };
    return { nodeName, owns, instances, disks, moving, isTaken, logger: silentLogger };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#opened.disposeAsync();
  }

  /** As the start of a daemon does (recover.ts). */
  async recover(): Promise<void> {
    await returnDepartures(this.parts);
    for (const uuid of await this.disks.listCopies())
      await this.disks.settleCopy(uuid, () => isOwnForGood(uuid, this.parts));
  }

  /** As a running daemon does now and then (reconcile.ts). @param laterMs since the last look */
  async look(laterMs = 10 * 60_000): Promise<void> {
    this.clock.advance(laterMs);
    await this.#sweepDepartures();
    await this.#sweepCopies();
  }

  /** The others' way to it: a dead daemon does not answer, a dying one breaks off. */
  client(from = this.name === TARGET ? SOURCE : TARGET): MigrationTargetClient {
    const answer = async <T>(ask: (migrationTarget: MigrationTarget) => Promise<T>): Promise<T> => {
      const { life, migrationTarget } = this;
      try {
        life.moment();
        const told = await ask(migrationTarget);
        life.moment();
        return told;
      } catch (error) {
        if (!(error instanceof Killed)) throw error;
        throw new AppError('NODE_UNREACHABLE', `${this.name} is gone`, { cause: error });
      }
    };
    return {
      check: (...given) => answer((migrationTarget) => migrationTarget.check(...given)),
      // The schemas of the contract parse all messages, as between real nodes.
      begin: async (uuid, files, signal) => {
        const asked = arrivalRequest.parse({ files });
        const begun = await answer((migrationTarget) =>
          migrationTarget.begin({ uuid, from }, asked.files, signal),
        );
        return arrivalBegun.parse(begun);
      },
      write: (at, message) =>
        answer((migrationTarget) => migrationTarget.write({ ...at, from }, message)),
      sendFile: async (at, transfer, signal) => {
        const stream = await answer((migrationTarget) => migrationTarget.openFile({ ...at, from }));
        await transfer.send(stream, signal);
      },
      verify: async (at, digests, signal) => {
        const asked = arrivalDigests.parse({ digests });
        await answer((migrationTarget) =>
          migrationTarget.verify({ ...at, from }, asked.digests, signal),
        );
      },
      ...{ checkMachine: noGuest, expect: noGuest, openStream: noGuest, awaitGuest: noGuest },
      ...{ handOver: noGuest, sync: noGuest },
      end: async (uuid) => {
        return arrivalEnded.parse(
          await answer((migrationTarget) => migrationTarget.end({ uuid, from })),
        );
      },
      endRemains: (uuid) => answer((migrationTarget) => migrationTarget.endRemains({ uuid, from })),
    };
  }

  /** The job of a move to another node. */
  move(
    instance: InstanceRecord,
    to: MovingNode,
    signal = new AbortController().signal,
  ): Promise<void> {
    const ofTarget = ['check', 'begin', 'write', 'sendFile', 'verify', 'end'];
    const client = to.client(this.name);
    const { life } = this;
    const sendFile: MigrationTargetClient['sendFile'] = (at, transfer, given) => {
      // Killed between two records, too.
      const send: typeof transfer.send = (stream, within) => {
        const write = stream.write.bind(stream) as (...written: unknown[]) => boolean;
        const mortal = (...written: unknown[]): boolean => {
          life.moment();
          return write(...written);
        };
        return transfer.send(Object.assign(stream, { write: mortal }), within);
      };
      return client.sendFile(at, { position: transfer.position, send }, given);
    };
    const target = life.wrap({ ...client, sendFile }, ofTarget);
    const report = { log: () => undefined, progress: () => undefined };
    const context = { jobId: 1, signal, report } as unknown as JobContext;
    return moveInstance(instance, to.name, context, { ...this.parts, target, rate: null });
  }
}

/** A stopped instance with a disk that is mostly holes, one of odd content, and UEFI variables. */
export async function placeInstance(node: MovingNode, name: string): Promise<InstanceRecord> {
  const planned = planNewInstance(
    createOpcode({ name, disks: [{ sizeBytes: 4 * MIB }, { sizeBytes: MIB + 512 }] }),
    { nodeName: node.name, newUuid: randomUUID, newMac: () => 'aa:00:00:00:00:01' },
  );
  const instance = await node.instances.create({ ...planned, installState: 'installed' });
  await node.disks.createEmpty(instance);
  for (const [index, offsets] of [
    [0, [0, 2 * MIB - 100, 4 * MIB - 1000]],
    [1, [3000]],
  ] as const) {
    await using file = await open(node.disks.pathOf(instance, index), 'r+');
    for (const offset of offsets) await file.write(randomBytes(1000), 0, 1000, offset);
  }
  await using variables = await open(node.disks.variablesPathOf(instance), 'w');
  await variables.write('what the firmware remembers');
  return instance;
}

export async function contentOf(disksDir: string, uuid: string): Promise<Record<string, Buffer>> {
  const names = (await readdir(join(disksDir, uuid))).sort();
  const read = names.map(
    async (name) => [name, await readFile(join(disksDir, uuid, name))] as const,
  );
  return Object.fromEntries(await Promise.all(read));
}

/** It is whole on the node that its record names, and nothing of it is anywhere else. */
export async function assertOnOne(
  uuid: string,
  content: Record<string, Buffer>,
  nodes: readonly MovingNode[],
): Promise<string> {
  const owner = await ownerOf(uuid, nodes);
  for (const { name, disksDir } of nodes)
    assert.deepEqual(await readdir(disksDir), name === owner ? [uuid] : [], `${name} of ${owner}`);
  const there = nodes.find(({ name }) => name === owner);
  assert.ok(there);
  const found = await contentOf(there.disksDir, uuid);
  assert.deepEqual(Object.keys(found), Object.keys(content));
  for (const [name, bytes] of Object.entries(content))
    assert.ok(found[name]?.equals(bytes), `${name} on ${owner}`);
  return owner;
}

export async function ownerOf(uuid: string, [node]: readonly MovingNode[]): Promise<string> {
  const record = await node?.instances.findByUuid(uuid);
  assert.ok(record);
  return record.primaryNode;
}

export async function takenOf(path: string): Promise<number> {
  return (await stat(path)).blocks * 512;
}
