import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdir, rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import type { Store } from '#shared/store/store.ts';
import { endInterruptedMoves } from '../../../../noded/cluster/migration/end-interrupted-moves.ts';
import { assertOnOne, contentOf, Killed, SOURCE, TARGET } from '../../support/moving-nodes.ts';
import { type MovingWorld, useMovingWorlds } from '../../support/moving-worlds.ts';

const worlds = useMovingWorlds();

/** Loses the target after the commit, so that it does not answer. */
function loseAfterCommit(target: MovingWorld['target']): () => void {
  const client = target.client.bind(target);
  target.client = () => ({
    ...client(),
    end: () => Promise.reject(new AppError('NODE_UNREACHABLE', `${target.name} is gone`)),
  });
  return () => (target.client = client);
}

test('disks of an instance that was given away stay until its node says that it has them', async (t) => {
  const { source, target, instance, content } = await worlds.open(t);
  const comeBack = loseAfterCommit(target);
  await source.move(instance, target);
  const left = [`leaving-${instance.uuid}`];
  await source.look();
  assert.deepEqual(await readdir(source.disksDir), left, 'after a look');
  await source.startDaemon();
  await source.recover();
  assert.deepEqual(await readdir(source.disksDir), left, 'after a start');
  comeBack();
  await source.look();
  assert.equal(await assertOnOne(instance.uuid, content, [source, target]), TARGET);
});

test('a node is asked soon whether it has the disks, and then less and less often', async (t) => {
  const { source, target, instance, content } = await worlds.open(t);
  const comeBack = loseAfterCommit(target);
  await source.move(instance, target);
  await source.startDaemon();
  let asked = 0;
  const client = target.client.bind(target);
  target.client = () => {
    asked += 1;
    return client();
  };
  const looksOf10s = async (count: number): Promise<number> => {
    const before = asked;
    for (let look = 0; look < count; look += 1) await source.look(10_000);
    return asked - before;
  };
  assert.equal(await looksOf10s(1), 1, 'when it starts');
  assert.equal(await looksOf10s(6), 2, 'in the next minute');
  assert.ok((await looksOf10s(180)) <= 8, 'in half an hour');
  comeBack();
  await looksOf10s(60);
  assert.equal(await assertOnOne(instance.uuid, content, [source, target]), TARGET);
});

test('what a killed daemon was sending ends at the other node when the next one starts', async (t) => {
  const { source, target, instance, content } = await worlds.open(t);
  const leave = (): never => {
    source.life.isOver = true;
    throw new Killed();
  };
  const { moving } = source;
  const depart = moving.depart.bind(moving);
  source.moving = {
    ...moving,
    depart: async (one) => Object.assign(await depart(one), { leave }),
  };
  await assert.rejects(source.move(instance, target), Killed);
  assert.deepEqual(await readdir(target.disksDir), [`copying-${instance.uuid}`]);
  await source.startDaemon();
  await source.recover();
  const { owns, instances } = source;
  const other = { opcode: 'INSTANCE_REMOVE', name: instance.name };
  const move = { opcode: 'INSTANCE_MOVE', name: instance.name, node: TARGET };
  await endInterruptedMoves(
    [{ input: other }, { input: move }],
    { owns, instances, clientOf: () => target.client(SOURCE), logger: silentLogger },
    new AbortController().signal,
  );
  assert.equal(await assertOnOne(instance.uuid, content, [source, target]), SOURCE);
});

test('disks whose new node was lost and forgotten come back, and are told as those of nobody', async (t) => {
  const { source, target, instance, content } = await worlds.open(t);
  loseAfterCommit(target);
  await source.move(instance, target);
  // As a removal of the node with --forget-instances does.
  await source.instances.forget(instance.uuid, TARGET);
  await source.look();
  assert.deepEqual(await source.disks.list(), [instance.uuid]);
  assert.deepEqual(await contentOf(source.disksDir, instance.uuid), content);
});

for (const how of ['its start', 'a look'] as const) {
  test(`disks of an instance that was removed where it went do not come back: ${how}`, async (t) => {
    const { source, target, instance } = await worlds.open(t);
    loseAfterCommit(target);
    await source.move(instance, target);
    // The target continues, and its instance is removed.
    await target.startDaemon();
    await target.recover();
    await target.disks.remove(instance);
    await target.instances.remove(instance.uuid);
    await source.startDaemon();
    if (how === 'its start') await source.recover();
    else await source.look();
    assert.deepEqual(await readdir(source.disksDir), []);
    assert.deepEqual(await source.instances.departedFrom(SOURCE), []);
  });
}

test('nothing is noted of a move that came to its end, nor of one of whose start nothing is left', async (t) => {
  const { source, target, instance } = await worlds.open(t);
  await source.move(instance, target);
  assert.deepEqual(await source.instances.departedFrom(SOURCE), []);
  // Of shared disks, which have no folder that leaves.
  const change = (primaryNode: string) => (one: InstanceRecord) => ({ ...one, primaryNode });
  await target.instances.update(instance.uuid, change(SOURCE));
  assert.deepEqual(await target.instances.departedFrom(TARGET), [instance.uuid]);
  await target.recover();
  assert.deepEqual(await target.instances.departedFrom(TARGET), []);
});

test('what a node has again is not taken for what once left it', async (t) => {
  const { source, instance, content } = await worlds.open(t);
  const { uuid } = instance;
  // There and back, and the note of the first way could not be dropped with its folder.
  for (const primaryNode of [TARGET, SOURCE])
    await source.instances.update(uuid, (one) => ({ ...one, primaryNode }));
  // The next move dies before its commit, and the record is lost.
  await rename(join(source.disksDir, uuid), join(source.disksDir, `leaving-${uuid}`));
  await source.instances.remove(uuid);
  await source.look();
  assert.deepEqual(await contentOf(source.disksDir, uuid), content);
  assert.deepEqual(await source.instances.departedFrom(SOURCE), []);
});

/** A store that goes away with the commit that gives an instance away. */
function leavingStore(): { readonly store: Store; readonly back: () => void } {
  const store = worlds.store();
  let isAway = false;
  const commit: Store['commit'] = (writes) => {
    isAway ||= JSON.stringify(writes).includes(`"primaryNode":"${TARGET}"`);
    if (isAway) return Promise.reject(new AppError('STORE_UNAVAILABLE', 'the store is away'));
    return store.commit(writes);
  };
  const away = new Proxy(store, {
    get: (_, name) => {
      const found = Reflect.get(store, name) as unknown;
      if (name === 'commit') return commit;
      return typeof found === 'function' ? (found.bind(store) as unknown) : found;
    },
  });
  return { store: away, back: () => (isAway = false) };
}

test('a job finds the disks of an instance whose move failed with the store, and a removal takes them', async (t) => {
  const { source, target, instance, content } = await worlds.open(t);
  const away = leavingStore();
  await source.startDaemon(undefined, away.store);
  const left = [`leaving-${instance.uuid}`];
  for (const next of ['settled', 'removed'] as const) {
    await assert.rejects(source.move(instance, target), { code: 'STORE_UNAVAILABLE' });
    assert.deepEqual(await readdir(source.disksDir), left);
    await assert.rejects(source.disks.settle(instance), { code: 'STORE_UNAVAILABLE' });
    away.back();
    if (next === 'settled') {
      await source.disks.settle(instance);
      await source.disks.activate(instance);
      assert.deepEqual(await contentOf(source.disksDir, instance.uuid), content);
    } else {
      await source.disks.remove(instance);
      assert.deepEqual(await readdir(source.disksDir), []);
    }
  }
});

test("disks of an instance that is given away are no job's of the node that it left", async (t) => {
  const { source, target, instance } = await worlds.open(t);
  loseAfterCommit(target);
  await source.move(instance, target);
  await source.disks.settle(instance);
  await source.disks.remove(instance);
  assert.deepEqual(await readdir(source.disksDir), [`leaving-${instance.uuid}`]);
});

test('what ends an arrival takes nothing from a copy that is being made', async (t) => {
  const { source, instance } = await worlds.open(t);
  const uuid = randomUUID();
  await source.disks.copy(instance, { uuid, instanceId: randomUUID() }, {
    signal: AbortSignal.timeout(60_000),
    onProgress: () => undefined,
    isThere: () => Promise.resolve(true),
    commit: () => source.migrationTarget.end({ uuid }),
  }); // prettier-ignore
  assert.deepEqual((await readdir(source.disksDir)).sort(), [instance.uuid, uuid].sort());
});

test('a disk that is a symbolic link does not move, which its error says', async (t) => {
  const { source, target, instance } = await worlds.open(t);
  const path = source.disks.pathOf(instance, 0);
  await rename(path, join(worlds.directory(), instance.uuid));
  await symlink(join(worlds.directory(), instance.uuid), path);
  await assert.rejects(source.move(instance, target), { code: 'NOT_SUPPORTED' });
  assert.deepEqual(await readdir(source.disksDir), [instance.uuid]);
});
