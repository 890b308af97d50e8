import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import type { JobRecord } from '#shared/contract/job.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import { noSecrets } from '../../../noded/instances/parameters/job-secrets.ts';
import { isWantedUp, planStarts } from '../../../noded/instances/machines/plan-starts.ts';
import { beginInstall, beginReinstall } from '../../../noded/records/install-states.ts';
import { recover } from '../../../noded/wiring/recover.ts';
import { sampleJob } from '../../lab/sample-job.ts';
import { FakeMachine } from '../support/fake-machine.ts';
import { createKilledNode, createReinstalled } from '../support/killed-node.ts';

const ignore = (): void => undefined;
const report = {
  ...{ log: ignore, waits: ignore, stageStarted: ignore, stageFinished: ignore },
  ...{ progress: ignore, output: ignore, scriptOutput: ignore },
};

const runningJob = sampleJob();

test('jobs that were running are told as interrupted, ended ones stay as they are', async (t) => {
  const node = await createKilledNode(t);
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
  const node = await createKilledNode(t);
  await node.create('web1.example.com');
  const read = t.mock.method(node.store, 'get');
  await recover(node);
  assert.equal(node.readWhole.mock.callCount(), 1);
  const again = read.mock.calls.filter(({ arguments: [collection] }) => collection === 'instances');
  assert.equal(again.length, 0, 'without files nothing is to be settled');
});

test('an interrupted installation is ended and told as failed, not started', async (t) => {
  const node = await createKilledNode(t);
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

test('copies that were killed are settled each on its own, whichever cannot be', async (t) => {
  const node = await createKilledNode(t);
  const disks = createInstanceDisks(await mkdtemp(join(node.dir, 'disks-')));
  const [broken, copy] = [await node.create('web1'), await node.create('web2')];
  for (const instance of [broken, copy]) await disks.createEmpty(instance);
  const folders = [broken, copy].map((instance) => dirname(disks.pathOf(instance, 0)));
  for (const folder of folders)
    await rename(folder, join(dirname(folder), `copying-${basename(folder)}`));
  const unreadable = { collection: 'instances', expected: 'any', value: { schema: 7 } } as const;
  await node.store.commit([{ ...unreadable, id: broken.uuid }]);
  // The unreadable copy comes first.
  const listCopies = () => Promise.resolve([broken.uuid, copy.uuid]);
  const settle = () => Promise.resolve([]);
  const [list, settleCopy] = [disks.list.bind(disks), disks.settleCopy.bind(disks)];
  const removeSeed = disks.removeSeed.bind(disks);
  await recover({ ...node, disks: { list, settleCopy, removeSeed, listCopies, settle } });
  assert.deepEqual(folders.map(existsSync), [false, true]);
  assert.deepEqual(await disks.listCopies(), [broken.uuid]);
});

test('a folder of disks that cannot be read does not keep the daemon from starting', async (t) => {
  const node = await createKilledNode(t);
  const web1 = await node.create('web1.example.com');
  const machine = new FakeMachine(web1.uuid);
  node.hypervisor.survivors = [{ machine, meta: { kind: 'run', device: 'gnt.com.4' } }];
  const broken = (): Promise<never> => Promise.reject(new Error('EIO: i/o error, scandir'));
  const disks = { settle: broken, removeSeed: broken, settleCopy: broken };
  await recover({ ...node, disks: { ...disks, list: broken, listCopies: broken } });
  assert.equal(node.keeper.get(web1.uuid)?.device, 'gnt.com.4');
});

test('an instance whose reinstallation was interrupted is what it was, on its old disks', async (t) => {
  const node = await createKilledNode(t);
  const { up, read } = await createReinstalled(node);
  await recover(node);
  const found = await node.instances.findByUuid(up.uuid);
  const { serialNo = 0 } = found ?? {};
  assert.deepEqual(found, { ...up, serialNo });
  assert.equal(await read(), 'old');
  assert.deepEqual(await node.disks.settle(up), []);
});

test('what a job had stopped when the daemon was killed is started again', async (t) => {
  const node = await createKilledNode(t);
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
  const node = await createKilledNode(t);
  const { next, read } = await createReinstalled(node);
  await node.instances.update(next.uuid, () => next);
  await recover(node);
  assert.equal(await read(), 'new');
});

test('one that had to overwrite the old disks is told as failed', async (t) => {
  const node = await createKilledNode(t);
  const { up } = await createReinstalled(node);
  await node.instances.update(up.uuid, (instance) => ({ ...instance, beforeReinstall: null }));
  await recover(node);
  const found = await node.instances.findByUuid(up.uuid);
  assert.deepEqual([found?.installState, found?.adminState], ['failed', 'down']);
  assert.equal(found?.install?.error?.code, 'JOB_INTERRUPTED');
});

test('the seed disk of a start that was killed, or of an earlier release, goes', async (t) => {
  const node = await createKilledNode(t);
  const [stopped, running] = [
    await node.create('web1.example.com'),
    await node.create('web2.example.com'),
  ];
  const machine = new FakeMachine(running.uuid);
  node.hypervisor.survivors = [{ machine, meta: { kind: 'run', device: 'gnt.com.4' } }];
  const seeds = [stopped, running].map((instance) => node.disks.seedPathOf(instance));
  for (const { uuid } of [stopped, running]) await mkdir(join(node.dir, uuid));
  for (const seed of seeds) await writeFile(seed, 'user data');
  await recover(node);
  assert.deepEqual(seeds.map(existsSync), [false, false]);
  assert.equal(machine.isRunning(), true);
});

test('an installation that was killed before its first stage says so', async (t) => {
  const node = await createKilledNode(t);
  const web1 = await node.create('web1.example.com');
  await node.instances.update(web1.uuid, (instance) => ({ ...instance, ...beginInstall(7, 1) }));
  await recover(node);
  const found = await node.instances.findByUuid(web1.uuid);
  assert.equal(found?.installState, 'failed');
  assert.equal(found.install?.jobId, 7);
  assert.equal(found.install.stage, 'create-disks');
  assert.equal(found.install.error?.code, 'JOB_INTERRUPTED');
});
