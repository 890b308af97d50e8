import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import { MachineKeeper } from '../../../noded/instances/machines/machine-keeper.ts';
import { createOrphans } from '../../../noded/instances/machines/orphans.ts';
import { planNewInstance } from '../../../noded/instances/record/plan-record.ts';
import { createViews } from '../../../noded/instances/view/views.ts';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { adoptInstanceHandler, orRemoveOrphan } from '../../../noded/operations/remove-orphan.ts';
import { createClusterRepository } from '../../../noded/records/cluster-repository.ts';
import { createInstanceRepository } from '../../../noded/records/instance-repository.ts';
import { FakeMachine } from '../support/fake-machine.ts';
import { createLabLifecycles } from '../support/lab-lifecycles.ts';
import { FakeHypervisor, FakeMetad, FakeNetwork } from '../support/fake-node.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { noBoots } from '../support/no-boots.ts';
import { createOpcode } from '../support/opcodes.ts';
import { createLabBootViews, noIdentities } from '../support/lab-boot-views.ts';
import { bridgesOnly } from '../support/bridges-only.ts';

const COLLECTIONS = ['instances', 'claim-name', 'claim-ip', 'claim-mac'];

/** Creates a node on which web1 runs, with another store than the one in which it was made. */
async function createNode(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-orphans-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const clock = new ManualClock(50_000);
  const logger = silentLogger;
  const store = createSqliteStore({ path: join(dir, 'store.sqlite'), clock });
  t.after(() => store.close());
  const clusters = createClusterRepository(store, clock);
  await clusters.ensure();
  const instances = createInstanceRepository(store, clock, createRecordProblems(logger));
  const metad = new FakeMetad();
  const network = new FakeNetwork();
  const views = createViews(
    instances,
    clusters,
    createLabLifecycles(),
    createLabBootViews(clusters),
    noIdentities,
  );
  const keeper = new MachineKeeper({
    enterShared: () => Promise.resolve(null),
    nicTaps: bridgesOnly,
    boots: noBoots,
    ...{ hypervisor: new FakeHypervisor(), network, metad, logger, clock },
    onReleased: () => undefined,
    onExit: () => undefined,
  });
  const disks = createInstanceDisks(join(dir, 'disks'));
  const owns = (node: string): boolean => node === 'node1';
  const orphans = createOrphans({ instances, keeper, views, owns, logger, clock });
  const create = (name: string, mac = '02:00:00:00:00:01') =>
    instances.create(
      planNewInstance(
        createOpcode({
          ...{ name, communication: true, osParametersPrivate: { token: 'x' } },
          nics: [{ mac, mode: 'user' as const }],
        }),
        { nodeName: 'node1', newUuid: randomUUID, newMac: () => mac },
      ),
    );
  const web1 = await create('web1');
  await disks.createEmpty(web1);
  const before = await instances.update(web1.uuid, (web) => ({ ...web, adminState: 'up' }));
  const machine = new FakeMachine(web1.uuid);
  keeper.keepOrphan(machine, 'web1', 'gnt.com.3');
  const lose = async (...collections: string[]): Promise<void> => {
    for (const collection of collections)
      for (const { id } of await store.list(collection))
        await store.commit([{ collection, id, expected: 'any', value: undefined }]);
  };
  const dependencies = {
    ...{ instances, orphans, owns, nodeName: 'node1', disks, logDir: join(dir, 'log') },
    // These operations use no other dependencies.
  } as unknown as OperationDependencies;
  const signal = AbortSignal.timeout(60_000);
  const context = {
    ...{ jobId: 1, signal, report: { log: () => undefined } },
  } as unknown as JobContext;
  const adopt = async (name: string): Promise<unknown> => {
    const opcode = { opcode: 'INSTANCE_ADOPT', name } as const;
    return (await adoptInstanceHandler(dependencies).prepare(opcode, signal))(context);
  };
  const remove = async (name: string): Promise<unknown> => {
    const opcode = { opcode: 'INSTANCE_REMOVE', name, shutdownTimeoutS: 0 } as const;
    const ofInstances = {
      prepare: () => Promise.resolve(() => Promise.resolve('removed as an instance')),
    };
    const handler = orRemoveOrphan(ofInstances, dependencies);
    return (await handler.prepare(opcode, signal))(context);
  };
  const keep = (record: InstanceRecord | string): void => {
    machine.note = typeof record === 'string' ? record : JSON.stringify(record);
  };
  return {
    ...{ before, machine, store, instances, network, metad, keeper, orphans, disks },
    ...{ create, lose, keep, adopt, remove },
  };
}

test('a machine whose whole store was moved away is an instance again, untouched, with what it had', async (t) => {
  const node = await createNode(t);
  node.keep(node.before);
  await node.lose(...COLLECTIONS);
  await node.adopt('web1');
  const found = await node.instances.findByName('web1');
  assert.deepEqual(
    { ...found, modifiedAtMs: 0, serialNo: 0 },
    { ...node.before, modifiedAtMs: 0, serialNo: 0 },
  );
  assert.equal(node.machine.isRunning(), true);
  assert.deepEqual(node.orphans.list(), []);
  assert.deepEqual(node.network.repaired, ['gnt.com.3']);
  assert.equal(node.metad.views.get(node.before.uuid)?.mode, 'run');
  for (const claims of ['claim-name', 'claim-ip'])
    assert.equal((await node.store.list(claims)).length, 1, claims);
  assert.equal((await node.store.list('claim-mac')).length, 2);
});

test('a record that alone was lost comes back with the claims that are still its own', async (t) => {
  const node = await createNode(t);
  node.keep(node.before);
  await node.lose('instances');
  await node.adopt(node.before.uuid);
  assert.equal((await node.instances.findByName('web1')).uuid, node.before.uuid);
});

test('a record that cannot be read is replaced by the one that was kept', async (t) => {
  const node = await createNode(t);
  node.keep(node.before);
  const { uuid } = node.before;
  await node.store.commit([
    { collection: 'instances', id: uuid, expected: 'any', value: { schema: 7 } },
  ]);
  await node.adopt('web1');
  assert.equal((await node.instances.findByUuid(uuid))?.name, 'web1');
});

for (const [what, given, code, message] of [
  ['name', { name: 'web1', mac: '02:00:00:00:00:02' }, 'INSTANCE_EXISTS', /'web1'/],
  ['MAC', { name: 'web2', mac: '02:00:00:00:00:01' }, 'CONFLICT', /02:00:00:00:00:01.*'web2'/],
] as const) {
  test(`a ${what} that another instance has by now is refused by name, and nothing is changed`, async (t) => {
    const node = await createNode(t);
    node.keep(node.before);
    await node.lose(...COLLECTIONS);
    await node.create(given.name, given.mac);
    await assert.rejects(node.adopt(node.before.uuid), { code, message });
    assert.equal(await node.instances.findByUuid(node.before.uuid), undefined);
    assert.equal((await node.instances.list()).length, 1);
    assert.equal(node.machine.isRunning(), true);
    assert.equal(node.orphans.list().length, 1);
  });
}

test('a channel address that another instance has by now is refused by name', async (t) => {
  const node = await createNode(t);
  node.keep(node.before);
  await node.lose(...COLLECTIONS, 'counters');
  const other = await node.create('web2', '02:00:00:00:00:02');
  assert.equal(other.channel.ip, node.before.channel.ip, 'the counter was lost too');
  await assert.rejects(node.adopt('web1'), {
    code: 'CONFLICT',
    message: /address 169\.254\..*'web2'/,
  });
});

for (const [what, note] of [
  ['nothing', undefined],
  ['half of it', '{"schema":1,"name":"web1"'],
  ['what is no record', '{"schema":1}'],
] as const) {
  test(`${what} kept beside a machine is no record, and the refusal says what can be done`, async (t) => {
    const node = await createNode(t);
    if (note !== undefined) node.keep(note);
    await node.lose(...COLLECTIONS);
    await assert.rejects(node.adopt('web1'), {
      code: 'INSTANCE_STATE',
      hint: /backup.*gnt-instance remove/,
    });
    assert.deepEqual(await node.instances.list(), []);
  });
}

test('the record of another machine, or of one that was never installed, is not taken for its own', async (t) => {
  const node = await createNode(t);
  await node.lose(...COLLECTIONS);
  node.keep({ ...node.before, uuid: randomUUID() });
  await assert.rejects(node.adopt('web1'), { code: 'INSTANCE_STATE' });
  node.keep({ ...node.before, installState: 'installing' });
  await assert.rejects(node.adopt('web1'), { code: 'INSTANCE_STATE' });
});

test("an instance that is another node's by now is not adopted", async (t) => {
  const node = await createNode(t);
  node.keep(node.before);
  await node.instances.update(node.before.uuid, (web) => ({ ...web, primaryNode: 'node2' }));
  await assert.rejects(node.adopt('web1'), { code: 'CONFLICT', message: /node2/ });
});

test('a name that is no orphan is refused; two of one name are told apart by their UUIDs', async (t) => {
  const node = await createNode(t);
  await assert.rejects(node.adopt('web7'), { code: 'INSTANCE_NOT_FOUND' });
  const second = new FakeMachine(randomUUID());
  node.keeper.keepOrphan(second, 'web1', null);
  await assert.rejects(node.adopt('web1'), { code: 'CONFLICT', hint: new RegExp(second.uuid) });
});

test('removing an orphan ends its machine, and takes its disks and what it still claims', async (t) => {
  const node = await createNode(t);
  await node.lose('instances');
  const disk = node.disks.pathOf(node.before, 0);
  assert.ok(existsSync(disk));
  await node.remove('web1');
  assert.equal(node.machine.isRunning(), false);
  assert.ok(!existsSync(disk));
  for (const collection of COLLECTIONS)
    assert.deepEqual(await node.store.list(collection), [], collection);
  assert.deepEqual(node.orphans.list(), []);
});

test('of an instance and an orphan of one name, removing by name means the instance', async (t) => {
  const node = await createNode(t);
  await node.lose(...COLLECTIONS);
  await node.create('web1', '02:00:00:00:00:02');
  assert.equal(await node.remove('web1'), 'removed as an instance');
  assert.equal(node.machine.isRunning(), true);
  await node.remove(node.before.uuid);
  assert.equal(node.machine.isRunning(), false);
  assert.equal((await node.instances.findByName('web1')).name, 'web1');
});
