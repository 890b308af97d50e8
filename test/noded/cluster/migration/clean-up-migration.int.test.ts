import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { test, type TestContext } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import type { MigrationTargetClient } from '../../../../noded/cluster/migration/migration-target-client.ts';
import { cleanUpMigration } from '../../../../noded/cluster/migration/clean-up-migration.ts';
import type { MigrationState } from '../../../../noded/vmm/machine-migration.ts';
import { FakeMachine } from '../../support/fake-machine.ts';
import { assertOnOne, type MovingNode, SOURCE, TARGET } from '../../support/moving-nodes.ts';
import { type MovingWorld, useMovingWorlds } from '../../support/moving-worlds.ts';

const worlds = useMovingWorlds();
const signal = new AbortController().signal;

/**
 * Runs the job on the node that has the instance.
 * @returns its log, and the commands to its QEMU process
 */
async function cleanUp(
  node: MovingNode,
  { source, target, instance }: MovingWorld,
  state?: MigrationState,
): Promise<readonly string[]> {
  const said: string[] = [];
  const made = new FakeMachine(instance.uuid);
  const machine = Object.assign(made, {
    migration: {
      ...made.migration,
      state: () => Promise.resolve(state),
      abandon: () => Promise.resolve(void said.push('goes on')),
    },
  }) as FakeMachine;
  const kept = {
    machine,
    kind: 'run',
    instanceName: '',
    device: null,
    isOrphan: false,
    lostSecrets: [],
  } as const;
  const other = node === source ? target : source;
  await cleanUpMigration(
    instance,
    { signal, report: { log: (line: string) => void said.push(line) } as never },
    {
      ...node.parts,
      metad: { stay: () => Promise.resolve(void said.push('is served')) },
      keeper: { get: () => (state === undefined ? undefined : kept) },
      others: new Map([[other.name, other.client(node.name)]]),
    },
  );
  return said;
}

test('a machine that was about to leave goes on, where the record says that it is', async (t) => {
  const world = await worlds.open(t);
  for (const run of ['postmigrate', 'finish-migrate']) {
    const state = { run, migration: 'completed', isMirrored: false };
    const said = await cleanUp(world.source, world, state);
    assert.deepEqual(said.slice(0, 2).sort(), ['goes on', 'is served'], run);
  }
  const running = { run: 'running', migration: 'none', isMirrored: false };
  assert.ok(!(await cleanUp(world.source, world, running)).includes('goes on'));
});

test('what waits for it on another node goes at once, and its own disks come back', async (t) => {
  const world = await worlds.open(t);
  const { source, target, instance, content } = world;
  const departure = await source.moving.depart(instance);
  const files = departure.files.map(({ name, sizeBytes }) => ({ name, sizeBytes }));
  await target.migrationTarget.begin({ uuid: instance.uuid, from: SOURCE }, files, signal);
  await departure.leave();
  await departure[Symbol.asyncDispose]();
  const said = await cleanUp(source, world);
  assert.match(said.join('\n'), /are back in place[^]*no longer waits for it/);
  assert.equal(await assertOnOne(instance.uuid, content, [source, target]), SOURCE);
  assert.match((await cleanUp(source, world)).join('\n'), /node2.example.com holds nothing of it/);
});

/** It has left, and its new node did not answer when it was asked whether it has all. */
async function leftBehind(t: TestContext): Promise<MovingWorld> {
  const world = await worlds.open(t);
  const { source, target, instance } = world;
  const client = target.client.bind(target);
  const silent = (): Promise<never> => Promise.reject(new AppError('NODE_UNREACHABLE', 'silent'));
  target.client = (from): MigrationTargetClient => ({ ...client(from), end: silent });
  await source.move(instance, target);
  target.client = client;
  return world;
}

test('what it has left on the node before goes, when the one that has it asks', async (t) => {
  const world = await leftBehind(t);
  const { source, target, instance, content } = world;
  assert.deepEqual(await readdir(source.disksDir), [`leaving-${instance.uuid}`]);
  const said = await cleanUp(target, world);
  assert.match(said.join('\n'), /node1.example.com has removed its earlier copies/);
  assert.equal(await assertOnOne(instance.uuid, content, [source, target]), TARGET);
});

test('nobody ends anything of an instance that is not his', async (t) => {
  const { source, instance } = await leftBehind(t);
  const { uuid } = instance;
  for (const from of [undefined, SOURCE, 'node9.example.com'])
    await assert.rejects(source.migrationTarget.endRemains({ uuid, from }), {
      code: 'NOT_ALLOWED',
    });
  assert.deepEqual(await readdir(source.disksDir), [`leaving-${uuid}`]);
});

test('a node that does not answer is told of, and keeps nobody from cleaning up', async (t) => {
  const world = await worlds.open(t);
  world.target.life.isOver = true;
  const said = await cleanUp(world.source, world);
  assert.match(said.join('\n'), /node2.example.com does not confirm that it holds nothing of it/);
});
