import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import type { JobRecord } from '#shared/contract/job.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { createClusterRepository } from '../../noded/records/cluster-repository.ts';
import { createInstanceDisks } from '../../noded/disks/instance-disks.ts';
import { createMovingDisks } from '../../noded/disks/moving-disks.ts';
import { createSnapshotDisks } from '../../noded/disks/snapshot-disks.ts';
import { beginInstall, beginReinstall } from '../../noded/records/install-states.ts';
import { createGuestEvents } from '../../noded/instances/guest-events.ts';
import { createGuestReports } from '../../noded/instances/guest-reports.ts';
import { createInstanceRepository } from '../../noded/records/instance-repository.ts';
import { createInstanceRunner } from '../../noded/instances/instance-runner.ts';
import { createMachineKeeper } from '../../noded/instances/machine-keeper.ts';
import { planNewInstance } from '../../noded/instances/plan-record.ts';
import { createViews } from '../../noded/instances/views.ts';
import { createTestOutcomes } from './support/test-outcomes.ts';
import { createJobRepository } from '../../noded/jobs/job-repository.ts';
import { createOrphans } from '../../noded/instances/orphans.ts';
import { noSecrets } from '../../noded/instances/job-secrets.ts';
import { isWantedUp, planStarts } from '../../noded/instances/plan-starts.ts';
import { recover } from '../../noded/recover.ts';
import { FakeMachine } from './support/fake-machine.ts';
import { createLabLifecycles } from './support/lab-lifecycles.ts';
import { FakeHypervisor, FakeMetad, FakeNetwork } from './support/fake-node.ts';
import { ManualClock } from './support/manual-clock.ts';
import { createOpcode } from './support/opcodes.ts';
import { randomUUID } from 'node:crypto';
import { startInstanceIndex } from '../../noded/records/instance-index.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { sampleJob } from '../lab/sample-job.ts';
import { createLabBootViews } from './support/lab-boot-views.ts';
import { bridgesOnly } from './support/bridges-only.ts';

const ignore = (): void => undefined;
const report = {
  ...{ log: ignore, waits: ignore, stageStarted: ignore, stageFinished: ignore },
  ...{ progress: ignore, output: ignore },
};
let dir = '';
let stores = 0;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-recover-'));
});
after(() => rm(dir, { recursive: true, force: true }));

/**
 * A node whose daemon was killed: what it left in the store, in metad and in the process table is
 * the test's choice.
 */
async function createNode(t: TestContext) {
  stores += 1;
  const clock = new ManualClock(50_000);
  const store = createSqliteStore({ path: join(dir, `store-${stores}.sqlite`), clock });
  t.after(() => store.close());
  const clusters = createClusterRepository(store, clock);
  await clusters.ensure();
  const instances = createInstanceRepository(store, clock, createRecordProblems(silentLogger));
  const problems = createRecordProblems(silentLogger);
  const readWhole = t.mock.method(store, 'scan');
  const index = startInstanceIndex({ store, problems, logger: silentLogger });
  t.after(() => index[Symbol.asyncDispose]());
  const jobs = createJobRepository(store, problems);
  const hypervisor = new FakeHypervisor();
  const network = new FakeNetwork();
  const metad = new FakeMetad();
  const lifecycles = createLabLifecycles();
  const views = createViews(instances, clusters, lifecycles, createLabBootViews(clusters));
  const logger = silentLogger;
  const keeper = createMachineKeeper({
    cards: bridgesOnly,
    hypervisor,
    network,
    metad,
    logger,
    clock,
    onExit: () => undefined,
  });
  const guestEvents = createGuestEvents();
  const guestReports = createGuestReports({ instances, keeper, guestEvents, logger, clock });
  const disks = createInstanceDisks(dir);
  const snapshots = createSnapshotDisks(dir, disks);
  const runner = createInstanceRunner({
    cards: bridgesOnly,
    instances,
    keeper,
    views,
    metad,
    disks,
    guestReports,
    lifecycles,
    chooseAccelerator: () => Promise.resolve('tcg'),
    clock,
  });
  const owns = (node: string | undefined): boolean =>
    node === undefined || node === 'node1.example.com';
  return {
    readWhole,
    store,
    hypervisor,
    network,
    metad,
    views,
    keeper,
    runner,
    orphans: createOrphans({ instances, keeper, views, owns, logger, clock }),
    guestEvents,
    guestReports,
    lifecycles,
    instances,
    index,
    disks,
    ...{ snapshots, moving: createMovingDisks(dir, disks), nodeName: 'node1.example.com' },
    jobs,
    outcomes: createTestOutcomes(join(dir, `outcomes-${stores}`), jobs, instances),
    owns,
    logger,
    clock,
    create: (name: string) =>
      instances.create(
        planNewInstance(createOpcode({ name, communication: true }), {
          nodeName: 'node1.example.com',
          newUuid: randomUUID,
          newMac: () => 'aa:00:00:00:00:01',
        }),
      ),
  };
}

const runningJob = sampleJob();

test('jobs that were running are told as interrupted, ended ones stay as they are', async (t) => {
  const node = await createNode(t);
  await node.jobs.save(runningJob);
  const done: JobRecord = { ...runningJob, id: 2, status: 'success', endedAtMs: 3 };
  await node.jobs.save(done);
  await recover(node);
  const interrupted = await node.jobs.load(1);
  assert.equal(interrupted?.status, 'error');
  assert.equal(interrupted.error?.code, 'JOB_INTERRUPTED');
  assert.equal(interrupted.endedAtMs, 50_000);
  assert.deepEqual(await node.jobs.load(2), done);
});

test('the records of all instances are read once, by the index', async (t) => {
  const node = await createNode(t);
  await node.create('web1.example.com');
  const read = t.mock.method(node.store, 'get');
  await recover(node);
  assert.equal(node.readWhole.mock.callCount(), 1);
  const again = read.mock.calls.filter(({ arguments: [collection] }) => collection === 'instances');
  assert.equal(again.length, 0, 'without files nothing is to be settled');
});

test('a running instance is taken over with its TAP, and its view is told again', async (t) => {
  const node = await createNode(t);
  const web1 = await node.create('web1.example.com');
  const machine = new FakeMachine(web1.uuid);
  node.hypervisor.survivors = [{ machine, meta: { kind: 'run', device: 'gnt.com.4' } }];
  await recover(node);
  assert.equal(machine.isRunning(), true);
  assert.deepEqual(node.network.repaired, ['gnt.com.4']);
  assert.equal(node.keeper.get(web1.uuid)?.device, 'gnt.com.4');
  assert.equal(node.metad.views.get(web1.uuid)?.mode, 'run');
});

test('an interrupted installation is ended and told as failed, not started', async (t) => {
  const node = await createNode(t);
  const web1 = await node.create('web1.example.com');
  await node.instances.update(web1.uuid, (instance) => ({
    ...instance,
    installState: 'installing',
    adminState: 'up',
    install: { ...beginInstall(1, 1).install, stage: 'image' },
  }));
  const machine = new FakeMachine(web1.uuid);
  node.network.taps.add('gnt.com.0');
  node.hypervisor.survivors = [{ machine, meta: { kind: 'appliance', device: 'gnt.com.0' } }];
  await recover(node);
  assert.equal(machine.isRunning(), false);
  assert.equal(node.network.taps.size, 0);
  const found = await node.instances.findByUuid(web1.uuid);
  assert.equal(found?.installState, 'failed');
  assert.equal(found.adminState, 'down');
  assert.equal(found.install?.state, 'failed');
  assert.equal(found.install.stage, 'image');
  assert.equal(found.install.error?.code, 'JOB_INTERRUPTED');
});

/** An instance that was up, with its disk, and the new disk of a reinstallation. */
async function createReinstalled(node: Awaited<ReturnType<typeof createNode>>) {
  const web1 = await node.create('web1.example.com');
  const installed = { ...beginInstall(1, 1).install, state: 'success' } as const;
  const up = await node.instances.update(web1.uuid, (instance) => ({
    ...instance,
    ...{ installState: 'installed', adminState: 'up', install: installed },
  }));
  await node.disks.createEmpty(up);
  await writeFile(node.disks.pathOf(up, 0), 'old');
  await node.instances.update(web1.uuid, (instance) => ({
    ...beginReinstall(instance, 2, 2),
    adminState: 'down',
  }));
  const next = { ...up, instanceId: randomUUID() };
  using files = node.disks.openForInstall(next, { kind: 'beside', neededBytes: 1 });
  await files.create();
  await writeFile(files.pathOf(0), 'new');
  return { up, next, read: () => readFile(node.disks.pathOf(up, 0), 'utf8') };
}

test('copies that were killed are settled each on its own, whichever cannot be', async (t) => {
  const node = await createNode(t);
  const disks = createInstanceDisks(await mkdtemp(join(dir, 'disks-')));
  const [broken, copy] = [await node.create('web1'), await node.create('web2')];
  for (const instance of [broken, copy]) await disks.createEmpty(instance);
  const folders = [broken, copy].map((instance) => dirname(disks.pathOf(instance, 0)));
  for (const folder of folders)
    await rename(folder, join(dirname(folder), `copying-${basename(folder)}`));
  const unreadable = { collection: 'instances', expected: 'any', value: { schema: 7 } } as const;
  await node.store.commit([{ ...unreadable, id: broken.uuid }]);
  // Whichever of the two is tried first.
  const listCopies = () => Promise.resolve([broken.uuid, copy.uuid]);
  const settle = () => Promise.resolve([]);
  await recover({ ...node, disks: { ...disks, listCopies, settle } });
  assert.deepEqual(folders.map(existsSync), [false, true]);
  assert.deepEqual(await disks.listCopies(), [broken.uuid]);
});

test('a folder of disks that cannot be read does not keep the daemon from starting', async (t) => {
  const node = await createNode(t);
  const web1 = await node.create('web1.example.com');
  const machine = new FakeMachine(web1.uuid);
  node.hypervisor.survivors = [{ machine, meta: { kind: 'run', device: 'gnt.com.4' } }];
  const broken = (): Promise<never> => Promise.reject(new Error('EIO: i/o error, scandir'));
  await recover({ ...node, disks: { ...node.disks, list: broken, listCopies: broken } });
  assert.equal(node.keeper.get(web1.uuid)?.device, 'gnt.com.4');
});

test('an instance whose reinstallation was interrupted is what it was, on its old disks', async (t) => {
  const node = await createNode(t);
  const { up, read } = await createReinstalled(node);
  await recover(node);
  const found = await node.instances.findByUuid(up.uuid);
  const { serialNo = 0 } = found ?? {};
  assert.deepEqual(found, { ...up, serialNo });
  assert.equal(await read(), 'old');
  assert.deepEqual(await node.disks.settle(up), []);
});

test('what a job had stopped when the daemon was killed is started again', async (t) => {
  const node = await createNode(t);
  const context = { jobId: 7, signal: new AbortController().signal, report };
  const create = async (name: string) => {
    const { uuid } = await node.create(name);
    const instance = await node.instances.update(uuid, (current) => ({
      ...current,
      seedDisk: false,
    }));
    await node.runner.start(instance, noSecrets, context);
    return node.instances.findByName(name);
  };
  const [exported, rebooted, stopped] = await Promise.all(
    ['exported', 'rebooted', 'stopped'].map((name) => create(`${name}.example.com`)),
  );
  assert.ok(exported && rebooted && stopped);
  const reinstalled = await create('reinstalled.example.com');
  await node.instances.update(reinstalled.uuid, (instance) =>
    beginReinstall({ ...instance, installState: 'installed' }, 7, 0),
  );
  await node.runner.stop(reinstalled, 0, context, 'interlude');
  await node.runner.stop(exported, 0, context, 'interlude');
  await node.runner.stop(rebooted, 0, context, 'reboot');
  await node.runner.stop(stopped, 0, context);
  await recover(node);
  const found = async () => {
    const listed = (await node.index.list()).filter(isWantedUp);
    const records = await Promise.all(listed.map(({ uuid }) => node.instances.findByUuid(uuid)));
    const down = records.flatMap((each) =>
      each === undefined || node.runner.isRunning(each.uuid) ? [] : [each],
    );
    return planStarts(down, 'ended')
      .flat()
      .map(({ name }) => name.split('.')[0]);
  };
  assert.deepEqual(await found(), ['exported', 'rebooted', 'reinstalled']);
  const again = await node.instances.findByName(rebooted.name);
  await node.runner.start(again, noSecrets, context);
  await node.runner.stop(exported, 0, context);
  assert.deepEqual(await found(), ['reinstalled']);
  await node.runner.stop(again, 0, context);
  assert.deepEqual(await found(), ['reinstalled']);
});

test('a reinstallation that was recorded as done is done, whatever was left to do', async (t) => {
  const node = await createNode(t);
  const { next, read } = await createReinstalled(node);
  await node.instances.update(next.uuid, () => next);
  await recover(node);
  assert.equal(await read(), 'new');
});

test('one that had to overwrite the old disks is told as failed', async (t) => {
  const node = await createNode(t);
  const { up } = await createReinstalled(node);
  await node.instances.update(up.uuid, (instance) => ({ ...instance, beforeReinstall: null }));
  await recover(node);
  const found = await node.instances.findByUuid(up.uuid);
  assert.deepEqual([found?.installState, found?.adminState], ['failed', 'down']);
  assert.equal(found?.install?.error?.code, 'JOB_INTERRUPTED');
});

test('the seed disk of a start that was killed, or of an earlier release, goes', async (t) => {
  const node = await createNode(t);
  const [stopped, running] = [
    await node.create('web1.example.com'),
    await node.create('web2.example.com'),
  ];
  const machine = new FakeMachine(running.uuid);
  node.hypervisor.survivors = [{ machine, meta: { kind: 'run', device: 'gnt.com.4' } }];
  const seeds = [stopped, running].map((instance) => node.disks.seedPathOf(instance));
  for (const { uuid } of [stopped, running]) await mkdir(join(dir, uuid));
  for (const seed of seeds) await writeFile(seed, 'user data');
  await recover(node);
  assert.deepEqual(seeds.map(existsSync), [false, false]);
  assert.equal(machine.isRunning(), true);
});

test('an installation that was killed before its first stage says so', async (t) => {
  const node = await createNode(t);
  const web1 = await node.create('web1.example.com');
  await node.instances.update(web1.uuid, (instance) => ({ ...instance, ...beginInstall(7, 1) }));
  await recover(node);
  const found = await node.instances.findByUuid(web1.uuid);
  assert.equal(found?.installState, 'failed');
  assert.equal(found.install?.jobId, 7);
  assert.equal(found.install.stage, 'create-disks');
  assert.equal(found.install.error?.code, 'JOB_INTERRUPTED');
});

test('a machine without a record runs on as an orphan, with its view, and is taken over when the record is back', async (t) => {
  const node = await createNode(t);
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
  const node = await createNode(t);
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
  const node = await createNode(t);
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
  const node = await createNode(t);
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
  const node = await createNode(t);
  const [web1, web2] = [await node.create('web1'), await node.create('web2')];
  const folder = join(dir, web1.uuid, `snapshotting-${randomUUID()}`);
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
  const node = await createNode(t);
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
  const node = await createNode(t);
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
  const node = await createNode(t);
  const web1 = await node.create('web1');
  await node.metad.putView(await node.views.forRun(web1.uuid, 'gnt.com.0', 9_000_000));
  node.hypervisor.survivors = [
    { machine: new FakeMachine(web1.uuid), meta: { kind: 'run', device: 'gnt.com.0' } },
  ];
  await recover(node);
  assert.equal(node.metad.views.get(web1.uuid)?.revision, 9_000_001);
});

test('a machine whose record is lost while the daemon runs is an orphan, until it is back', async (t) => {
  const node = await createNode(t);
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
