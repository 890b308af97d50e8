import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { after, before, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAppError, toError } from '#shared/errors/app-error.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store } from '#shared/store/store.ts';
import type { MigrationTargetClient } from '../../../../noded/cluster/migration/migration-target-client.ts';
import {
  assertOnOne,
  contentOf,
  Killed,
  MIB,
  MovingNode,
  MovingNodes,
  ownerOf,
  placeInstance,
  SOURCE,
  takenOf,
  TARGET,
} from '../../support/moving-nodes.ts';

let cluster: MovingNodes;
let stores: readonly [Store, Store];
let worlds = 0;

before(async () => {
  cluster = await MovingNodes.start();
  stores = [await cluster.openStore(), await cluster.openStore()];
});
after(() => cluster[Symbol.asyncDispose]());

interface World {
  readonly source: MovingNode;
  readonly target: MovingNode;
  readonly both: readonly [MovingNode, MovingNode];
  readonly instance: InstanceRecord;
  readonly content: Record<string, Buffer>;
}

async function makeWorld(t: TestContext): Promise<World> {
  const dir = join(cluster.directory, `world-${(worlds += 1)}`);
  const source = await MovingNode.create(SOURCE, join(dir, 'one'), stores[0]);
  const target = await MovingNode.create(TARGET, join(dir, 'two'), stores[1]);
  for (const node of [source, target]) node.others = [source, target];
  t.after(async () => {
    for (const node of [source, target]) await node[Symbol.asyncDispose]();
  });
  const instance = await placeInstance(source, `web${worlds}.example.com`);
  // Its NIC's address is free again for the next one.
  await source.instances.update(instance.uuid, (current) => ({ ...current, nics: [] }));
  const content = await contentOf(source.disksDir, instance.uuid);
  return { source, target, both: [source, target], instance, content };
}

test("a moved instance is the other node's, as it was, and holes are holes there too", async (t) => {
  const { source, target, both, instance, content } = await makeWorld(t);
  const before = await required(source, instance);
  await source.move(instance, target);
  assert.equal(await assertOnOne(instance.uuid, content, both), TARGET);
  const moved = await required(target, instance);
  const { serialNo, modifiedAtMs } = before;
  assert.deepEqual({ ...moved, primaryNode: SOURCE, serialNo, modifiedAtMs }, before);
  assert.ok((await takenOf(target.disks.pathOf(instance, 0))) < MIB);
  assert.equal(target.admitted, 0);
  // And back, by the very way.
  await target.move(await required(target, instance), source);
  assert.equal(await assertOnOne(instance.uuid, content, both), SOURCE);
});

async function required(node: MovingNode, { uuid }: InstanceRecord): Promise<InstanceRecord> {
  const record = await node.instances.findByUuid(uuid);
  assert.ok(record);
  return record;
}

/** How many moments a move has on each side. */
async function countMoments(t: TestContext): Promise<readonly [number, number]> {
  const { source, target, instance } = await makeWorld(t);
  const from = [source.life.steps, target.life.steps] as const;
  await source.move(instance, target);
  return [source.life.steps - from[0], target.life.steps - from[1]];
}

for (const side of ['source', 'target'] as const) {
  test(`the ${side} killed at any moment of a move leaves the instance whole on exactly one node`, async (t) => {
    const moments = (await countMoments(t))[side === 'source' ? 0 : 1];
    assert.ok(moments > 10, String(moments));
    const owners = new Map<string, number>();
    for (let at = 1; at <= moments; at += 1) {
      // The order of the two restarts makes no difference.
      const order = at % 2 === 0 ? 'killed first' : 'other first';
      const world = await makeWorld(t);
      const { source, target, both, instance, content } = world;
      const killed = world[side];
      const other = killed === source ? target : source;
      await killed.startDaemon(at);
      const isDone = await source.move(instance, target).then(
        () => true,
        (error: unknown) => {
          const isGone = isAppError(error, 'NODE_UNREACHABLE') || isAppError(error, 'NOT_FOUND');
          if (!(error instanceof Killed) && !isGone) throw error;
          return false;
        },
      );
      await killed.startDaemon();
      if (order === 'killed first') await killed.recover();
      // The source is dead, so the target ends the session by itself.
      await target.migrationTarget.end(instance);
      if (order === 'other first') {
        await other.startDaemon();
        await other.recover();
        await killed.recover();
      }
      // The daemon's timer removes leftovers of the job.
      await source.look();
      const owner = await assertOnOne(instance.uuid, content, both);
      if (isDone) assert.equal(owner, TARGET, `told as done at moment ${at}`);
      assert.equal(target.admitted, 0);
      owners.set(owner, (owners.get(owner) ?? 0) + 1);
      // And from there it moves on as if nothing had been.
      if (owner === SOURCE) await source.move(await required(source, instance), target);
      assert.equal(await assertOnOne(instance.uuid, content, both), TARGET, `again, ${at}`);
    }
    t.diagnostic(`${moments} moments: ${JSON.stringify([...owners])}`);
    assert.equal(owners.size, 2, 'both outcomes were seen');
  });
}

/** A store that does something of its own with the commit that gives an instance away. */
function withSwitch(
  store: Store,
  onSwitch: (commit: () => Promise<unknown>) => Promise<never>,
): Store {
  const commit: Store['commit'] = (writes) => {
    const isSwitch = writes.some(({ value }) =>
      JSON.stringify(value ?? null).includes(`"${TARGET}"`),
    );
    return isSwitch ? onSwitch(() => store.commit(writes)) : store.commit(writes);
  };
  return new Proxy(store, {
    get: (_, name) => {
      const found = Reflect.get(store, name) as unknown;
      if (name === 'commit') return commit;
      return typeof found === 'function' ? (found.bind(store) as unknown) : found;
    },
  });
}

for (const side of ['source', 'target'] as const) {
  test(`a commit of a killed source that arrives after the ${side} has settled changes nothing`, async (t) => {
    const world = await makeWorld(t);
    const { source, target, both, instance, content } = world;
    let late: () => Promise<unknown> = () => Promise.reject(new Error('there was none'));
    const holding = withSwitch(stores[0], (commit) => {
      late = commit;
      source.life.isOver = true;
      return Promise.reject(new Killed());
    });
    await source.startDaemon(undefined, holding);
    await assert.rejects(source.move(instance, target), Killed);
    assert.deepEqual(await readdir(source.disksDir), [`leaving-${instance.uuid}`]);
    await world[side].startDaemon();
    await world[side].recover();
    await assert.rejects(late, StoreConflict);
    await source.startDaemon();
    await source.recover();
    await target.migrationTarget.end(instance);
    assert.equal(await assertOnOne(instance.uuid, content, both), SOURCE);
  });
}

test('the target takes what is its own though the source was killed right after the commit', async (t) => {
  const { source, target, both, instance, content } = await makeWorld(t);
  const dying = withSwitch(stores[0], async (commit) => {
    await commit();
    source.life.isOver = true;
    throw new Killed();
  });
  await source.startDaemon(undefined, dying);
  await assert.rejects(source.move(instance, target), Killed);
  // Without a call of `end`, and without a restart of the source.
  const deadlineMs = performance.now() + 30_000;
  while (!(await readdir(target.disksDir)).includes(instance.uuid)) {
    assert.ok(performance.now() < deadlineMs, (await readdir(target.disksDir)).join());
    await sleep(50);
  }
  await source.startDaemon();
  await source.recover();
  await source.look();
  assert.equal(await assertOnOne(instance.uuid, content, both), TARGET);
  assert.equal(target.admitted, 0);
});

test('a commit that was told as failed and came through counts: the record is asked', async (t) => {
  const { source, target, both, instance, content } = await makeWorld(t);
  let isLost = false;
  const losing = withSwitch(stores[0], async (commit) => {
    await commit();
    isLost = true;
    throw new Error('the answer was lost');
  });
  await source.startDaemon(undefined, new Proxy(losing, {
    // Later writes of the record succeed.
    get: (_, name) => Reflect.get(isLost ? stores[0] : losing, name) as unknown,
  })); // prettier-ignore
  await source.move(instance, target);
  assert.equal(await assertOnOne(instance.uuid, content, both), TARGET);
});

test('a record that was changed meanwhile stays where it is, and nothing is left there', async (t) => {
  const { source, target, both, instance, content } = await makeWorld(t);
  const client = target.client();
  target.client = () => ({
    ...client,
    verify: async (...given) => {
      await client.verify(...given);
      await target.instances.update(instance.uuid, (current) => ({ ...current, tags: ['new'] }));
    },
  });
  await assert.rejects(source.move(instance, target), { code: 'CONFLICT' });
  assert.equal(await assertOnOne(instance.uuid, content, both), SOURCE);
});

/** A target that receives messages, not streams. */
function ofRelease02(client: MigrationTargetClient): MigrationTargetClient {
  return {
    ...client,
    begin: async (...given) => ({ ...(await client.begin(...given)), takesStreams: false }),
  };
}

/** Changes each stream of a file on its way to the target. */
function onStreams(
  node: MovingNode,
  change: (bytes: Buffer, stream: Duplex, name: string) => Buffer,
): void {
  const client = node.client();
  node.client = () => ({
    ...client,
    sendFile: (at, transfer, signal) => {
      const send: typeof transfer.send = (stream, within) => {
        const write = stream.write.bind(stream) as (...given: unknown[]) => boolean;
        const changing = (bytes: Buffer, ...given: unknown[]): boolean =>
          write(change(bytes, stream, at.name), ...given);
        return transfer.send(Object.assign(stream, { write: changing }), within);
      };
      // The same transfer again, as after a cut.
      const again = (): Promise<void> =>
        client.sendFile(at, { position: transfer.position, send }, signal);
      return again().catch((error: unknown) =>
        isAppError(error, 'NODE_UNREACHABLE') ? again() : Promise.reject(toError(error)),
      );
    },
  });
}

test('what did not arrive as it was sent is not taken, and the source keeps all', async (t) => {
  const { source, target, both, instance, content } = await makeWorld(t);
  onStreams(target, (bytes, _stream, name) => {
    const changed = Buffer.from(bytes);
    const last = changed.length - 1;
    if (name === 'disk0.raw' && last > 12) changed.writeUInt8((changed.at(-1) ?? 0) ^ 1, last);
    return changed;
  });
  await assert.rejects(source.move(instance, target), { code: 'CONFLICT', message: /disk0\.raw/ });
  assert.equal(await assertOnOne(instance.uuid, content, both), SOURCE);
  assert.equal(target.admitted, 0);
});

test('a cancelled move leaves nothing on the other node', async (t) => {
  const { source, target, both, instance, content } = await makeWorld(t);
  const cancelled = new AbortController();
  let written = 0;
  onStreams(target, (bytes) => {
    if ((written += 1) === 2) cancelled.abort(new Error('cancelled'));
    return bytes;
  });
  await assert.rejects(source.move(instance, target, cancelled.signal), /cancelled/);
  assert.equal(await assertOnOne(instance.uuid, content, both), SOURCE);
});

test('a stream that was cut continues at the last record that the target has written', async (t) => {
  const { source, target, both, instance } = await makeWorld(t);
  const path = source.disks.pathOf(instance, 0);
  await writeFile(path, randomBytes(4 * MIB));
  const content = await contentOf(source.disksDir, instance.uuid);
  const sent: number[] = [];
  onStreams(target, (bytes, stream, name) => {
    if (name !== 'disk0.raw') return bytes;
    sent.push(Number(bytes.readBigUInt64BE(4)) / MIB);
    // In the middle of a record, after others were written.
    if (sent.length !== 3) return bytes;
    setImmediate(() => stream.destroy());
    return bytes.subarray(0, 1000);
  });
  await source.move(instance, target);
  assert.equal(await assertOnOne(instance.uuid, content, both), TARGET);
  const again = sent.slice(sent.indexOf(3) + 1);
  assert.ok((again[0] ?? 0) > 1, `all was sent again: ${sent.join()}`);
  assert.equal(again.at(-1), 4);
});

test('a record outside of the file fails the move with the reason of the target', async (t) => {
  const { source, target, both, instance, content } = await makeWorld(t);
  onStreams(target, (bytes, _stream, name) => {
    const changed = Buffer.from(bytes);
    if (name === 'disk0.raw') changed.writeBigUInt64BE(BigInt(4 * MIB + 1), 4);
    return changed;
  });
  await assert.rejects(source.move(instance, target), { code: 'VALIDATION', message: /stream/ });
  assert.equal(await assertOnOne(instance.uuid, content, both), SOURCE);
});

test('a message to release 0.2 that was damaged is not taken, and the source keeps all', async (t) => {
  const { source, target, both, instance, content } = await makeWorld(t);
  const client = ofRelease02(target.client());
  target.client = () => ({
    ...client,
    write: (at, message, signal) => {
      const changed = Buffer.from(message);
      if (at.name === 'disk0.raw')
        changed.writeUInt8((changed.at(-1) ?? 0) ^ 1, changed.length - 1);
      return client.write(at, changed, signal);
    },
  });
  await assert.rejects(source.move(instance, target), { code: 'CONFLICT', message: /disk0\.raw/ });
  assert.equal(await assertOnOne(instance.uuid, content, both), SOURCE);
  assert.equal(target.admitted, 0);
});

test('a cancelled move to release 0.2 leaves nothing there', async (t) => {
  const { source, target, both, instance, content } = await makeWorld(t);
  const cancelled = new AbortController();
  const client = ofRelease02(target.client());
  let written = 0;
  target.client = () => ({
    ...client,
    write: async (...given) => {
      await client.write(...given);
      if ((written += 1) === 2) cancelled.abort(new Error('cancelled'));
    },
  });
  await assert.rejects(source.move(instance, target, cancelled.signal), /cancelled/);
  assert.equal(await assertOnOne(instance.uuid, content, both), SOURCE);
});

test('the same message twice changes nothing, one of another session or with other bounds is refused', async (t) => {
  const { source, target, both, instance, content } = await makeWorld(t);
  const client = ofRelease02(target.client());
  const refused: string[] = [];
  target.client = () => ({
    ...client,
    write: async (at, message, signal) => {
      await client.write(at, message, signal);
      await client.write(at, message, signal);
      const beyond = Buffer.from(message);
      beyond.writeBigUInt64BE(BigInt(4 * MIB));
      for (const [other, bytes] of [
        [{ ...at, session: crypto.randomUUID() }, message],
        [{ ...at, name: '../disk0.raw' }, message],
        [at, beyond],
        [at, message.subarray(0, -1)],
      ] as const) {
        await client.write(other, bytes, signal).catch((error: unknown) => {
          assert.ok(isAppError(error));
          refused.push(error.code);
        });
      }
    },
  });
  await source.move(instance, target);
  const once = ['NOT_FOUND', 'VALIDATION', 'VALIDATION', 'VALIDATION'];
  assert.deepEqual(refused.slice(0, 4), once);
  assert.equal(refused.length % 4, 0);
  assert.equal(await assertOnOne(instance.uuid, content, both), TARGET);
});

test('disks that are there already are not touched', async (t) => {
  const { source, target, instance, content } = await makeWorld(t);
  await target.disks.createEmpty(instance);
  await assert.rejects(source.move(instance, target), { code: 'CONFLICT' });
  assert.equal(await ownerOf(instance.uuid, [source]), SOURCE);
  assert.deepEqual(await contentOf(source.disksDir, instance.uuid), content);
  await rm(join(target.disksDir, instance.uuid), { recursive: true });
});

test('a move back waits until the disks that left are gone: they never get their name again', async (t) => {
  const { source, target, both, instance } = await makeWorld(t);
  const client = target.client();
  const taken = Promise.withResolvers<undefined>();
  const confirmed = Promise.withResolvers<undefined>();
  target.client = () => ({
    ...client,
    end: async (uuid, signal) => {
      const isTaken = await client.end(uuid, signal);
      taken.resolve(undefined);
      await confirmed.promise;
      return isTaken;
    },
  });
  t.after(() => confirmed.resolve(undefined));
  const away = source.move(instance, target);
  await Promise.race([taken.promise, away]);
  await writeFile(target.disks.pathOf(instance, 0), 'newer');
  await truncate(target.disks.pathOf(instance, 0), 4 * MIB);
  const newer = await contentOf(target.disksDir, instance.uuid);
  const back = async (): Promise<void> => target.move(await required(target, instance), source);
  await assert.rejects(back, { code: 'CONFLICT', message: /still leaving/ });
  assert.deepEqual(await readdir(source.disksDir), [`leaving-${instance.uuid}`]);
  confirmed.resolve(undefined);
  await away;
  assert.equal(await assertOnOne(instance.uuid, newer, both), TARGET);
  await back();
  assert.equal(await assertOnOne(instance.uuid, newer, both), SOURCE);
});

test('disks that left do not come back beside others that arrived', async (t) => {
  const { source, instance, content } = await makeWorld(t);
  const [leaving, copying] = ['leaving', 'copying'].map((word) => `${word}-${instance.uuid}`);
  await mkdir(join(source.disksDir, String(leaving)));
  await rename(join(source.disksDir, instance.uuid), join(source.disksDir, String(copying)));
  await assert.rejects(source.moving.comeBack(instance.uuid), { code: 'CONFLICT' });
  await source.recover();
  assert.deepEqual(await readdir(source.disksDir), [instance.uuid, leaving]);
  assert.deepEqual(await contentOf(source.disksDir, instance.uuid), content);
});

test('two instances move at once, in both directions', async (t) => {
  const one = await makeWorld(t);
  const { source, target } = one;
  const two = await placeInstance(source, 'another.example.com');
  const ofTwo = await contentOf(source.disksDir, two.uuid);
  await source.move(two, target);
  await Promise.all([
    source.move(one.instance, target),
    target.move(await required(target, two), source),
  ]);
  assert.deepEqual(await readdir(source.disksDir), [two.uuid]);
  assert.deepEqual(await readdir(target.disksDir), [one.instance.uuid]);
  assert.deepEqual(await contentOf(source.disksDir, two.uuid), ofTwo);
  assert.deepEqual(await contentOf(target.disksDir, one.instance.uuid), one.content);
});
