import assert from 'node:assert/strict';
import { readdir, rm } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { createPatientStore } from '#shared/store/patient-store.ts';
import type { Store } from '#shared/store/store.ts';
import type { MigrationTargetClient } from '../../../../noded/cluster/migration/migration-target-client.ts';
import { migrateInstance } from '../../../../noded/cluster/migration/migrate-instance.ts';
import type { JobContext } from '../../../../noded/jobs/job-handler.ts';
import { FakeMachine } from '../../support/fake-machine.ts';
import { TARGET } from '../../support/moving-nodes.ts';
import { type MovingWorld, useMovingWorlds } from '../../support/moving-worlds.ts';

const worlds = useMovingWorlds();
const signal = new AbortController().signal;

/** A QEMU process that is sent at once, and records its commands. */
function sentMachine(uuid: string) {
  const told: string[] = [];
  const made = new FakeMachine(uuid);
  const nothing = (): Promise<void> => Promise.resolve();
  const progress = { remainingBytes: 0, totalBytes: 0, dirtyRate: 0, sentRate: 0, passes: 1 };
  const machine = Object.assign(made, {
    migration: {
      ...made.migration,
      describe: () => Promise.resolve({ qemu: '10.0', board: 'pc' }),
      ...{ mirror: nothing, endMirrors: nothing, send: nothing, sendRest: nothing },
      mirrors: () => Promise.resolve({ doneBytes: 0, totalBytes: 0, areReady: true }),
      sending: () => Promise.resolve({ status: 'pre-switchover', ...progress }),
      abandon: () => Promise.resolve(void told.push('goes on')),
    },
  });
  return { machine, told };
}

/**
 * Runs the job with a target that accepts all data and does nothing else, except for the given
 * failures.
 */
async function migrate(
  world: MovingWorld,
  failing: Partial<MigrationTargetClient> = {},
): Promise<readonly string[]> {
  const { source, target, instance } = world;
  // A guest with UEFI firmware does not migrate.
  await rm(source.disks.variablesPathOf(instance));
  const { machine, told } = sentMachine(instance.uuid);
  const done = (): Promise<void> => Promise.resolve();
  const serialNo = async (): Promise<number> =>
    (await target.instances.findByUuid(instance.uuid))?.serialNo ?? 0;
  const report = { log: () => undefined, progress: () => undefined };
  const context = { jobId: 1, signal, report } as unknown as JobContext;
  const dependencies = {
    ...source.parts,
    target: {
      ...target.client(),
      begin: async () => ({ session: 'one', serialNo: await serialNo(), takesStreams: true }),
      ...{ expect: done, sync: done, handOver: done, awaitGuest: serialNo },
      openStream: () => Promise.resolve(new PassThrough()),
      end: () => Promise.resolve({ isTaken: true, isLost: false }),
      ...failing,
    },
    keeper: {
      become: (_: InstanceRecord, kind: string) => Promise.resolve(void told.push(kind)),
      get: () => undefined,
      kill: async () => {
        await machine.kill();
        told.push('ends');
      },
    },
    metad: {
      secrets: () => Promise.resolve(new Map()),
      leave: () => Promise.reject(new Error('it has no channel')),
      stay: () => Promise.resolve(void told.push('is served')),
    },
    listConnections: () => Promise.resolve([]),
    seedPathOf: () => '/nowhere/seed',
    rate: null,
  };
  try {
    await migrateInstance({ instance, machine }, TARGET, context, dependencies);
  } catch (error) {
    told.push(error instanceof AppError ? error.code : String(error));
  }
  return told;
}

/**
 * Loses the answer to the commit that gives the instance away. The target continues the guest at
 * once.
 */
function losingStore({ target, instance }: MovingWorld): Store {
  const store = worlds.store();
  let isGiven = false;
  const commit: Store['commit'] = async (writes) => {
    const isIt = !isGiven && JSON.stringify(writes).includes(`"primaryNode":"${TARGET}"`);
    const revisions = await store.commit(writes);
    if (!isIt) return revisions;
    isGiven = true;
    await target.instances.update(instance.uuid, (one) => ({ ...one, adminState: 'up' }));
    throw new AppError('STORE_UNAVAILABLE', 'the answer was lost');
  };
  return new Proxy(store, {
    get: (_, name) => {
      const found = Reflect.get(store, name) as unknown;
      if (name === 'commit') return commit;
      return typeof found === 'function' ? (found.bind(store) as unknown) : found;
    },
  });
}

test('a guest that is given away ends here', async (t) => {
  const world = await worlds.open(t);
  assert.deepEqual(await migrate(world), ['moving', 'ends']);
  assert.deepEqual(await readdir(world.source.disksDir), []);
});

test('one whose switch was told as failed, though it was made, ends here too', async (t) => {
  const world = await worlds.open(t);
  const { source } = world;
  await source.startDaemon(undefined, createPatientStore(losingStore(world), signal));
  assert.deepEqual(await migrate(world), ['moving', 'ends']);
  assert.deepEqual(await readdir(source.disksDir), []);
});

test('one whose switch was not made goes on here', async (t) => {
  const world = await worlds.open(t);
  const cut = (): Promise<never> => Promise.reject(new AppError('NODE_UNREACHABLE', 'it is cut'));
  assert.deepEqual(await migrate(world, { awaitGuest: cut }), ['goes on', 'NODE_UNREACHABLE']);
  assert.deepEqual(await readdir(world.source.disksDir), [world.instance.uuid]);
});
