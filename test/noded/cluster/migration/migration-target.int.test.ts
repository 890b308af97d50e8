import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { assertOnOne, MIB, SOURCE, TARGET } from '../../support/moving-nodes.ts';
import { useMovingWorlds } from '../../support/moving-worlds.ts';

const SILENCE_MS = 10 * 60_000;
const signal = new AbortController().signal;
const { open: openWorld } = useMovingWorlds();

function filesOf({ disks, instanceId }: InstanceRecord) {
  return [
    ...disks.map(({ sizeBytes }, index) => ({ name: `disk${index}.raw`, sizeBytes })),
    { name: `efi-variables-${instanceId}.fd`, sizeBytes: 1024 },
  ];
}

const HELLO = Buffer.concat([Buffer.alloc(11), Buffer.from([5]), Buffer.from('hello')]);

test('a node that reads for longer than it waits for a word takes the instance', async (t) => {
  const { source, target, instance, content } = await openWorld(t);
  const { moving } = target;
  target.moving = {
    ...moving,
    listLeaving: () => Promise.resolve([]),
    arrive: async (...given) => {
      const arrival = await moving.arrive(...given);
      return {
        pathOf: (name) => arrival.pathOf(name),
        sync: () => arrival.sync(),
        write: (...args) => arrival.write(...args),
        verify: async (...args) => {
          t.mock.timers.tick(2 * SILENCE_MS);
          await arrival.verify(...args);
        },
        [Symbol.asyncDispose]: () => arrival[Symbol.asyncDispose](),
      };
    },
  };
  target.openMigrationTarget();
  t.mock.timers.enable({ apis: ['setTimeout'] });
  await source.move(instance, target);
  assert.equal(await assertOnOne(instance.uuid, content, [source, target]), TARGET);
});

test('an arrival of which nothing is heard any more goes', async (t) => {
  const { target, instance } = await openWorld(t);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const from = SOURCE;
  const { uuid } = instance;
  const { session } = await target.migrationTarget.begin({ uuid, from }, filesOf(instance), signal);
  t.mock.timers.tick(SILENCE_MS - 1);
  await target.migrationTarget.write({ uuid, from, session, name: 'disk0.raw' }, HELLO);
  t.mock.timers.tick(SILENCE_MS - 1);
  assert.deepEqual(await readdir(target.disksDir), [`copying-${uuid}`]);
  assert.ok(target.moving.isArriving(uuid));
  t.mock.timers.tick(1);
  // Queued after the cleanup that the timeout started.
  await assert.rejects(
    target.migrationTarget.write({ uuid, from, session, name: 'disk0.raw' }, HELLO),
    {
      code: 'NOT_FOUND',
    },
  );
  assert.deepEqual(await readdir(target.disksDir), []);
  assert.ok(!target.moving.isArriving(uuid));
  assert.equal(target.admitted, 0);
});

test('what an arrival has left goes at the second look, one that is under way goes on', async (t) => {
  const { target, instance } = await openWorld(t);
  const from = SOURCE;
  const { uuid } = instance;
  await target.migrationTarget.begin({ uuid, from }, filesOf(instance), signal);
  await target.look();
  await target.look();
  assert.deepEqual(await readdir(target.disksDir), [`copying-${uuid}`], 'under way');
  // A daemon that could not ask whose it is.
  await target.startDaemon();
  await target.look();
  assert.deepEqual(await readdir(target.disksDir), [`copying-${uuid}`], 'at the first look');
  const { session } = await target.migrationTarget.begin({ uuid, from }, filesOf(instance), signal);
  await target.look();
  await target.migrationTarget.write({ uuid, from, session, name: 'disk0.raw' }, HELLO);
  assert.deepEqual(await readdir(target.disksDir), [`copying-${uuid}`], 'begun between');
  await target.startDaemon();
  await target.look();
  await target.look();
  assert.deepEqual(await readdir(target.disksDir), []);
});

test('what arrived, and is this node’s, gets its place at the second look', async (t) => {
  const { target, instance } = await openWorld(t);
  const from = SOURCE;
  const { uuid } = instance;
  await target.migrationTarget.begin({ uuid, from }, filesOf(instance), signal);
  await target.startDaemon();
  await target.instances.update(uuid, (one) => ({ ...one, primaryNode: TARGET }));
  await target.look();
  await target.look();
  assert.deepEqual(await readdir(target.disksDir), [uuid]);
});

test('files that are not those of the record are refused, and nothing is made', async (t) => {
  const { target, instance } = await openWorld(t);
  const { uuid } = instance;
  const right = filesOf(instance);
  const [first, ...others] = right;
  assert.ok(first);
  for (const files of [
    [],
    others,
    [...right, { name: 'disk2.raw', sizeBytes: MIB }],
    [...right, first],
    [{ ...first, sizeBytes: first.sizeBytes + 1 }, ...others],
    [...right.slice(0, 2), { name: `efi-variables-${randomUUID()}.fd`, sizeBytes: 1 }],
    [...right.slice(0, 2), { name: String(right[2]?.name), sizeBytes: 1024 * MIB }],
  ]) {
    const begun = target.migrationTarget.begin({ uuid, from: SOURCE }, files, signal);
    await assert.rejects(begun, { code: 'VALIDATION' }, JSON.stringify(files));
  }
  assert.deepEqual(await readdir(target.disksDir), []);
  assert.equal(target.admitted, 0);
});

test('a node gives away its own instances only, and disturbs nothing of others', async (t) => {
  const { source, target, instance } = await openWorld(t);
  const { uuid } = instance;
  const files = filesOf(instance);
  for (const from of ['node3.example.com', TARGET, undefined])
    await assert.rejects(target.migrationTarget.begin({ uuid, from }, files, signal), {
      code: 'NOT_ALLOWED',
    });
  const { session } = await target.migrationTarget.begin({ uuid, from: SOURCE }, files, signal);
  const other = { uuid, from: 'node3.example.com', session };
  const notFound = { code: 'NOT_FOUND' };
  await assert.rejects(
    target.migrationTarget.write({ ...other, name: 'disk0.raw' }, HELLO),
    notFound,
  );
  await assert.rejects(target.migrationTarget.verify(other, {}, signal), notFound);
  await assert.rejects(target.migrationTarget.sync(other), notFound);
  await target.migrationTarget.sync({ ...other, from: SOURCE });
  await assert.rejects(target.migrationTarget.end(other), { code: 'NOT_ALLOWED' });
  assert.deepEqual(await readdir(target.disksDir), [`copying-${uuid}`]);
  assert.equal((await target.migrationTarget.end({ uuid, from: SOURCE })).isTaken, false);
  assert.deepEqual(await readdir(target.disksDir), []);
  // The folder of a copy looks the same.
  const to = { uuid: randomUUID(), instanceId: randomUUID() };
  await source.disks.copy(instance, to, {
    ...{ signal, onProgress: () => undefined, isThere: () => Promise.resolve(true) },
    commit: () =>
      assert.rejects(source.migrationTarget.end({ uuid: to.uuid, from: TARGET }), {
        code: 'NOT_ALLOWED',
      }),
  });
  assert.deepEqual((await readdir(source.disksDir)).sort(), [uuid, to.uuid].sort());
});

test('what is no disk of an instance is named, not removed by a move of its folder', async (t) => {
  const { source, target, instance } = await openWorld(t);
  await writeFile(join(source.disksDir, instance.uuid, 'disk2.raw'), 'kept by hand');
  await writeFile(source.disks.seedPathOf(instance), 'of a start that was killed');
  await assert.rejects(source.move(instance, target), {
    code: 'INSTANCE_STATE',
    message: /: disk2\.raw$/,
  });
  assert.deepEqual(await readdir(source.disksDir), [instance.uuid]);
  assert.deepEqual(await readdir(target.disksDir), []);
});

test('what was read again is written no more, and told again as often as it is asked', async (t) => {
  const { source, target, instance, content } = await openWorld(t);
  const client = target.client();
  const tried: string[] = [];
  target.client = () => ({
    ...client,
    verify: async (at, digests, given) => {
      await client.verify(at, digests, given);
      await client.verify(at, digests, given);
      await assert.rejects(client.verify(at, { ...digests, 'disk0.raw': '' }, given), {
        code: 'CONFLICT',
      });
      await assert.rejects(client.write({ ...at, name: 'disk0.raw' }, HELLO, given), {
        code: 'NOT_FOUND',
      });
      tried.push('all');
    },
  });
  await source.move(instance, target);
  assert.deepEqual(tried, ['all']);
  assert.equal(await assertOnOne(instance.uuid, content, [source, target]), TARGET);
});

test(
  'a guest that could not go on at once goes on at the next look, and is not told as taken',
  { timeout: 20_000 },
  async (t) => {
    const { source, target, instance } = await openWorld(t);
    const { uuid } = instance;
    const welcomed: string[] = [];
    const goesOn = Promise.withResolvers<undefined>();
    target.openMigrationTarget(() =>
      Promise.resolve({
        gone: new Promise(() => undefined),
        isFed: () => false,
        openStream: () => Promise.reject(new Error('nothing is sent')),
        whenWhole: () => Promise.resolve(),
        takeMetadata: () => Promise.resolve(),
        welcome: () => {
          welcomed.push(welcomed.length < 2 ? 'failed' : 'goes on');
          if (welcomed.length < 3)
            return Promise.reject(new AppError('STORE_UNAVAILABLE', 'away for a moment'));
          goesOn.resolve(undefined);
          return Promise.resolve('goes-on' as const);
        },
        refuse: () => Promise.reject(new Error('it is its own')),
      }),
    );
    const { migrationTarget } = target;
    const at = { uuid, from: SOURCE };
    const session = { ...at, ...(await migrationTarget.begin(at, filesOf(instance), signal)) };
    const nature = { qemu: '10.0', board: 'pc', accelerator: 'tcg', processor: null } as const;
    const expected = { nature, startedAtMs: 0, arguments: [], seed: null, secrets: {} };
    await migrationTarget.expect(session, expected, signal);
    await migrationTarget.awaitGuest(session, signal);
    await source.instances.update(uuid, (current) => ({ ...current, primaryNode: TARGET }));
    await assert.rejects(migrationTarget.end(at), { code: 'STORE_UNAVAILABLE' });
    await goesOn.promise;
    assert.equal((await migrationTarget.end(at)).isTaken, true);
    assert.deepEqual(welcomed, ['failed', 'failed', 'goes on']);
    assert.equal(target.admitted, 0);
  },
);
