import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { createOrphans } from '../../noded/instances/machines/orphans.ts';
import { recover } from '../../noded/wiring/recover.ts';
import { FakeMachine } from './support/fake-machine.ts';
import { createKilledNode } from './support/killed-node.ts';

test('a running instance is taken over with its TAP, and its view is told again', async (t) => {
  const node = await createKilledNode(t);
  const web1 = await node.create('web1.example.com');
  const machine = new FakeMachine(web1.uuid);
  node.hypervisor.survivors = [{ machine, meta: { kind: 'run', device: 'gnt.com.4' } }];
  await recover(node);
  assert.equal(machine.isRunning(), true);
  assert.deepEqual(node.network.repaired, ['gnt.com.4']);
  assert.equal(node.keeper.get(web1.uuid)?.device, 'gnt.com.4');
  assert.equal(node.metad.views.get(web1.uuid)?.mode, 'run');
});

test('a machine without a record runs on as an orphan, with its view, and is taken over when the record is back', async (t) => {
  const node = await createKilledNode(t);
  const web1 = await node.create('web1');
  await node.metad.putView(await node.views.forRun(web1.uuid, 'gnt.com.3', 1));
  node.network.taps.add('gnt.com.3');
  const lost = await node.store.get('instances', web1.uuid);
  const remove = {
    collection: 'instances',
    id: web1.uuid,
    expected: 'any',
    value: undefined,
  } as const;
  await node.store.commit([remove]);
  const machine = new FakeMachine(web1.uuid);
  const meta = { kind: 'run', device: 'gnt.com.3', instance: 'web1' };
  node.hypervisor.survivors = [{ machine, meta }];
  await recover(node);
  assert.equal(machine.isRunning(), true);
  assert.deepEqual(node.orphans.list(), [
    { uuid: web1.uuid, name: 'web1', pid: machine.pid, tap: 'gnt.com.3' },
  ]);
  assert.equal(node.metad.views.get(web1.uuid)?.revision, 1, 'its guest is shown what it was');
  assert.ok(node.network.taps.has('gnt.com.3'));

  await node.store.commit([{ ...remove, value: lost?.value }]);
  await node.orphans.takeOverAll('warn');
  assert.deepEqual(node.orphans.list(), []);
  assert.deepEqual(node.network.repaired, ['gnt.com.3']);
  assert.ok((node.metad.views.get(web1.uuid)?.revision ?? 0) > 1);
});

test('a machine whose record cannot be read, or is of another node, is no reason to end it either', async (t) => {
  const node = await createKilledNode(t);
  const [web1, web2] = [await node.create('web1'), await node.create('web2')];
  await node.store.commit([
    { collection: 'instances', id: web1.uuid, expected: 'any', value: { schema: 7 } },
  ]);
  await node.instances.update(web2.uuid, (web) => ({ ...web, primaryNode: 'node2.example.com' }));
  const machines = [new FakeMachine(web1.uuid), new FakeMachine(web2.uuid)];
  node.hypervisor.survivors = machines.map((machine) => ({ machine, meta: { kind: 'run' } }));
  await recover(node);
  assert.deepEqual(
    machines.map((machine) => machine.isRunning()),
    [true, true],
  );
  assert.equal(node.orphans.list().length, 2);
});

test('a store that is away while machines are found again leaves none of them free to be overwritten', async (t) => {
  const node = await createKilledNode(t);
  const web1 = await node.create('web1');
  const machine = new FakeMachine(web1.uuid);
  node.hypervisor.survivors = [{ machine, meta: { kind: 'run', device: '' } }];
  let isAway = true;
  const instances = {
    ...node.instances,
    findByUuid: (uuid: string) =>
      isAway
        ? Promise.reject(new AppError('STORE_UNAVAILABLE', 'the store does not answer'))
        : node.instances.findByUuid(uuid),
  };
  const orphans = createOrphans({ ...node, instances });
  await recover({ ...node, instances, orphans });
  assert.equal(node.runner.isRunning(web1.uuid), true, 'a reinstallation sees that it runs');
  isAway = false;
  await orphans.takeOverAll('warn');
  assert.deepEqual(node.orphans.list(), []);
});

test('a machine whose own description is gone is told from an installation by what metad serves it', async (t) => {
  const node = await createKilledNode(t);
  const [web1, web2] = [await node.create('web1'), await node.create('web2')];
  await node.metad.putView(await node.views.forRun(web1.uuid, 'gnt.com.0', 1));
  const view = await node.views.forRun(web2.uuid, 'gnt.com.1', 1);
  await node.metad.putView({ ...view, mode: 'install' });
  const machines = [new FakeMachine(web1.uuid), new FakeMachine(web2.uuid)];
  node.hypervisor.survivors = machines.map((machine) => ({ machine, meta: {} }));
  await recover(node);
  assert.deepEqual(
    machines.map((machine) => machine.isRunning()),
    [true, false],
  );
  assert.equal(node.keeper.get(web1.uuid)?.device, 'gnt.com.0');
});

test('a guest that a killed snapshot left standing goes on, others are not told to', async (t) => {
  const node = await createKilledNode(t);
  const [web1, web2] = [await node.create('web1'), await node.create('web2')];
  const folder = join(node.dir, web1.uuid, `snapshotting-${randomUUID()}`);
  await mkdir(folder, { recursive: true });
  const machines = [new FakeMachine(web1.uuid), new FakeMachine(web2.uuid)];
  node.hypervisor.survivors = machines.map((machine) => ({ machine, meta: { kind: 'run' } }));
  await recover(node);
  assert.deepEqual(
    machines.map((machine) => machine.resumes),
    [1, 0],
  );
  assert.equal(existsSync(folder), false, 'what no record names is gone');
});

test('a machine that cannot be taken over does not keep the daemon from starting', async (t) => {
  const node = await createKilledNode(t);
  const [web1, web2] = [await node.create('web1'), await node.create('web2')];
  node.network.failure = new Error('its TAP is gone');
  node.hypervisor.survivors = [
    { machine: new FakeMachine(web1.uuid), meta: { kind: 'run', device: 'gnt.com.0' } },
    { machine: new FakeMachine(web2.uuid), meta: { kind: 'run', device: '' } },
  ];
  await recover(node);
  assert.ok(node.keeper.get(web2.uuid));
});

test('views of machines that are no more are dropped, those of running ones stay', async (t) => {
  const node = await createKilledNode(t);
  const [web1, web2] = [await node.create('web1'), await node.create('web2')];
  for (const { uuid } of [web1, web2]) {
    await node.metad.putView(await node.views.forRun(uuid, 'gnt.com.0', 1));
  }
  node.hypervisor.survivors = [
    { machine: new FakeMachine(web1.uuid), meta: { kind: 'run', device: 'gnt.com.0' } },
  ];
  await recover(node);
  assert.deepEqual([...node.metad.views.keys()], [web1.uuid]);
});

test('a clock that was set back does not keep metad from taking the view', async (t) => {
  const node = await createKilledNode(t);
  const web1 = await node.create('web1');
  await node.metad.putView(await node.views.forRun(web1.uuid, 'gnt.com.0', 9_000_000));
  node.hypervisor.survivors = [
    { machine: new FakeMachine(web1.uuid), meta: { kind: 'run', device: 'gnt.com.0' } },
  ];
  await recover(node);
  assert.equal(node.metad.views.get(web1.uuid)?.revision, 9_000_001);
});

test('a machine whose record is lost while the daemon runs is an orphan, until it is back', async (t) => {
  const node = await createKilledNode(t);
  const web1 = await node.create('web1');
  const machine = new FakeMachine(web1.uuid);
  node.hypervisor.survivors = [{ machine, meta: { kind: 'run', device: 'gnt.com.4' } }];
  await recover(node);
  await node.orphans.noticeLost();
  assert.deepEqual(node.orphans.list(), []);
  await node.instances.update(web1.uuid, (web) => ({ ...web, primaryNode: 'node2.example.com' }));
  await node.orphans.noticeLost();
  assert.equal(node.orphans.list()[0]?.uuid, web1.uuid);
  assert.equal(machine.isRunning(), true);
  assert.ok(node.metad.views.has(web1.uuid), 'its guest is shown what it was');
  await node.instances.update(web1.uuid, (web) => ({ ...web, primaryNode: 'node1.example.com' }));
  await node.orphans.takeOverAll('warn');
  assert.deepEqual(node.orphans.list(), []);
});
