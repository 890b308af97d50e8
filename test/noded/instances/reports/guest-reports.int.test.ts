import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import { refusedHostKeys } from '#shared/contract/refused-host-keys.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { createGuestEvents } from '../../../../noded/instances/reports/guest-events.ts';
import { createGuestReports } from '../../../../noded/instances/reports/guest-reports.ts';
import { describeSsh } from '../../../../noded/instances/reports/host-keys.ts';
import { MachineKeeper } from '../../../../noded/instances/machines/machine-keeper.ts';
import { planNewInstance } from '../../../../noded/instances/record/plan-record.ts';
import { createInstanceRepository } from '../../../../noded/records/instance-repository.ts';
import { FakeMachine } from '../../support/fake-machine.ts';
import { FakeHypervisor, FakeMetad, FakeNetwork } from '../../support/fake-node.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { noBoots } from '../../support/no-boots.ts';
import { createOpcode } from '../../support/opcodes.ts';
import { bridgesOnly } from '../../support/bridges-only.ts';

const WAIT_MS = 10_000;

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + WAIT_MS;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error('it never was');
    await new Promise(setImmediate);
  }
}

async function createLab(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-reports-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const clock = new ManualClock(50_000);
  const store = createSqliteStore({ path: join(dir, 'store.sqlite'), clock });
  t.after(() => store.close());
  const instances = createInstanceRepository(store, clock, createRecordProblems(silentLogger));
  const { uuid } = await instances.create(
    planNewInstance(createOpcode({ name: 'web1' }), {
      ...{ nodeName: 'node1', newUuid: randomUUID, newMac: () => 'aa:00:00:00:00:01' },
    }),
  );
  const load = async () => (await instances.findByUuid(uuid)) ?? assert.fail('no record');
  const started = new WeakSet<FakeMachine>();
  /**
   * Returns a daemon's view of one machine and its guest's events. The first daemon for a machine
   * started it; later ones adopt it.
   */
  const startDaemon = (
    machine: FakeMachine,
    findByUuid: typeof instances.findByUuid = (id) => instances.findByUuid(id),
  ) => {
    const guestEvents = createGuestEvents();
    const keeper = new MachineKeeper({
      enterShared: () => Promise.resolve(null),
      nicTaps: bridgesOnly,
      boots: noBoots,
      ...{ hypervisor: new FakeHypervisor(), network: new FakeNetwork(), metad: new FakeMetad() },
      ...{ logger: silentLogger, clock, onReleased: () => undefined, onExit: () => undefined },
    });
    const reports = createGuestReports({
      instances: { findByUuid, update: (...change) => instances.update(...change) },
      ...{ keeper, guestEvents, logger: silentLogger, clock, resultGraceMs: 50, againMs: 20 },
      writeDelayMs: 50,
    });
    const kept = keeper.keepOrphan(machine, 'web1', null);
    if (started.has(machine)) reports.followAdopted(kept);
    else reports.follow(kept);
    started.add(machine);
    const say = (): void =>
      guestEvents.dispatch({
        ...{ sequence: 1, instance: uuid },
        event: { type: 'ready', source: 'cloud-init', text: 'my password is geheim' },
      });
    const tell = (event: MetadEvent['event'], sequence = 1): void =>
      guestEvents.dispatch({ sequence, instance: uuid, event });
    const readyAtMs = async () => reports.report(await load())?.readyAtMs ?? null;
    const boot = async () => reports.report(await load())?.boot ?? null;
    /** Waits until all events before this one have been heard or dropped. */
    const untilHeard = async (sequence: number): Promise<void> => {
      const heard = reports.nextChange(uuid, AbortSignal.timeout(WAIT_MS));
      tell({ type: 'ready', source: 'cloud-init', text: '' }, sequence);
      await heard;
    };
    return { keeper, reports, say, tell, readyAtMs, boot, untilHeard };
  };
  const untilWritten = async (): Promise<void> => {
    await until(async () => (await load()).guestReport !== null);
  };
  return { clock, uuid, instances, load, startDaemon, untilWritten };
}

test("the guest's word that it is up survives the daemon, and is written once", async (t) => {
  const { clock, uuid, load, startDaemon, untilWritten } = await createLab(t);
  const machine = new FakeMachine(uuid, undefined, 40_000);
  const first = startDaemon(machine);
  assert.equal(await first.readyAtMs(), null);
  first.say();
  assert.equal(await first.readyAtMs(), 50_000);
  await untilWritten();
  const written = await load();
  assert.deepEqual(written.guestReport, {
    ...{ runStartedAtMs: 40_000, readyAtMs: 50_000, readySource: 'cloud-init', boot: null },
    ...{ hostKeys: [], firstHostKeys: [], loginUser: null, afterSequence: 0 },
  });
  clock.advance(5_000);
  first.say();

  const second = startDaemon(machine);
  assert.equal(await second.readyAtMs(), 50_000, 'nobody said it to this one');
  // metad replays the events it kept to a new daemon.
  second.say();
  await new Promise(setImmediate);
  assert.equal(await second.readyAtMs(), 50_000);
  assert.equal((await load()).serialNo, written.serialNo);
});

test('what was said while no daemon was there is heard by the next', async (t) => {
  const { uuid, startDaemon, untilWritten } = await createLab(t);
  const daemon = startDaemon(new FakeMachine(uuid, undefined, 40_000));
  daemon.say();
  await untilWritten();
  assert.equal(await daemon.readyAtMs(), 50_000);
});

test('it counts for the present run only', async (t) => {
  const { uuid, startDaemon, untilWritten } = await createLab(t);
  const first = startDaemon(new FakeMachine(uuid, undefined, 40_000));
  first.say();
  await untilWritten();
  await first.keeper.kill(uuid);
  assert.equal(await first.readyAtMs(), null);
  const second = startDaemon(new FakeMachine(uuid, undefined, 60_000));
  assert.equal(await second.readyAtMs(), null);
});

test('the verdict of cloud-init survives the daemon, and a reset takes it back', async (t) => {
  const { uuid, load, startDaemon, untilWritten } = await createLab(t);
  const machine = new FakeMachine(uuid, undefined, 40_000);
  const first = startDaemon(machine);
  first.tell({
    type: 'boot-result',
    result: { stage: null, errors: ['x'], recoverableErrors: [], stages: [] },
  });
  assert.equal((await first.boot())?.status, 'error', 'at once');
  await untilWritten();
  const second = startDaemon(machine);
  assert.deepEqual((await second.boot())?.errors, ['x'], 'nobody said it to this one');
  await second.reports.forget(uuid, () => Promise.resolve(0));
  assert.equal(await second.boot(), null);
  assert.equal((await load()).guestReport, null);
});

test('ten thousand changes of mind are two writes', async (t) => {
  const { uuid, load, startDaemon, untilWritten } = await createLab(t);
  const daemon = startDaemon(new FakeMachine(uuid, undefined, 40_000));
  const { serialNo } = await load();
  const stages = ['modules-config', 'modules-final'] as const;
  for (let at = 0; at < 10_000; at++) {
    const stage = stages[at % 2] ?? 'modules-final';
    daemon.tell({
      type: 'boot',
      event: { stage, module: null, phase: 'start', result: null, description: '' },
    });
  }
  await untilWritten();
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal((await load()).serialNo, serialNo + 1);
});

test('that a guest is up and its verdict right after are one write, and who waits does not wait for it', async (t) => {
  const { uuid, load, startDaemon, untilWritten } = await createLab(t);
  const daemon = startDaemon(new FakeMachine(uuid, undefined, 40_000));
  const { serialNo } = await load();
  daemon.say();
  // A write without a delay would call the store at this point.
  await load();
  daemon.tell({
    type: 'boot-result',
    result: { stage: null, errors: [], recoverableErrors: [], stages: [] },
  });
  assert.equal((await daemon.boot())?.status, 'done');
  await untilWritten();
  const written = await load();
  assert.equal(written.guestReport?.boot?.status, 'done');
  assert.equal(written.serialNo, serialNo + 1);
});

test('a guest that tells its events and no result has their verdict a moment later', async (t) => {
  const { uuid, startDaemon } = await createLab(t);
  const daemon = startDaemon(new FakeMachine(uuid, undefined, 40_000));
  const tell = (module: string | null, phase: 'start' | 'finish', result: 'FAIL' | null): void =>
    daemon.tell({
      type: 'boot',
      event: { stage: 'modules-final', module, phase, result, description: 'running' },
    });
  tell(null, 'start', null);
  tell('config-scripts-user', 'finish', 'FAIL');
  tell(null, 'finish', 'FAIL');
  tell(null, 'finish', 'FAIL');
  assert.equal((await daemon.boot())?.status, 'running');
  await until(async () => (await daemon.boot())?.status !== 'running');
  assert.deepEqual((await daemon.boot())?.errors, ['modules-final/config-scripts-user: running']);
});

const KEYS = ['A', 'B'].map(
  (last) => `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(42)}${last}`,
);

test('host keys that the guest says first are kept over runs, others are shown and not believed', async (t) => {
  const { uuid, load, startDaemon, untilWritten } = await createLab(t);
  const first = startDaemon(new FakeMachine(uuid, undefined, 40_000));
  const [one = '', other = ''] = KEYS;
  first.tell({ type: 'host-keys', keys: [one], user: 'debian' });
  const ssh = async (daemon: typeof first) => {
    const record = await load();
    return describeSsh(record, daemon.reports.report(record));
  };
  assert.deepEqual(await ssh(first), { user: 'debian', hostKeys: [one], saidHostKeys: [one] });
  await untilWritten();
  await first.keeper.kill(uuid);
  assert.deepEqual(await ssh(first), { user: 'debian', hostKeys: [one], saidHostKeys: [] });

  const second = startDaemon(new FakeMachine(uuid, undefined, 60_000));
  second.tell({ type: 'host-keys', keys: [other], user: 'mallory' });
  const said = await ssh(second);
  assert.deepEqual([said.hostKeys, refusedHostKeys(said)], [[one], [other]]);
  await until(async () => (await load()).guestReport?.runStartedAtMs === 60_000);
  assert.deepEqual((await load()).hostKeys?.keys, [one]);
});

test('keys that follow before the first ones are written take their place nowhere', async (t) => {
  const { uuid, load, startDaemon } = await createLab(t);
  const [one = '', other = ''] = KEYS;
  const daemon = startDaemon(new FakeMachine(uuid, undefined, 40_000));
  const ssh = async () => {
    const record = await load();
    return describeSsh(record, daemon.reports.report(record));
  };
  daemon.tell({ type: 'host-keys', keys: [one], user: 'debian' });
  daemon.tell({ type: 'host-keys', keys: [other], user: null });
  daemon.tell({ type: 'host-keys', keys: [], user: null });
  const expected = { user: 'debian', hostKeys: [one], saidHostKeys: [other] };
  assert.deepEqual(await ssh(), expected);
  await until(async () => (await load()).hostKeys !== null);
  assert.deepEqual((await load()).hostKeys?.keys, [one]);
  assert.deepEqual(await ssh(), expected);
});

test('a reset before the first keys are written leaves nobody another word', async (t) => {
  const { uuid, load, startDaemon } = await createLab(t);
  const [one = '', other = ''] = KEYS;
  const daemon = startDaemon(new FakeMachine(uuid, undefined, 40_000));
  daemon.tell({ type: 'host-keys', keys: [one], user: null });
  await daemon.reports.forget(uuid, () => Promise.resolve(1));
  daemon.tell({ type: 'host-keys', keys: [other], user: null }, 2);
  const record = await load();
  assert.deepEqual(describeSsh(record, daemon.reports.report(record)).hostKeys, [one]);
});

test('a reinstalled guest has other host keys, and nobody has to accept them', async (t) => {
  const { uuid, instances, load, startDaemon, untilWritten } = await createLab(t);
  const [one = '', other = ''] = KEYS;
  const first = startDaemon(new FakeMachine(uuid, undefined, 40_000));
  first.tell({ type: 'host-keys', keys: [one], user: null });
  await untilWritten();
  await first.keeper.kill(uuid);
  await instances.update(uuid, (current) => ({ ...current, instanceId: randomUUID() }));
  assert.deepEqual(describeSsh(await load(), null).hostKeys, []);
  const second = startDaemon(new FakeMachine(uuid, undefined, 60_000));
  second.tell({ type: 'host-keys', keys: [other], user: null });
  await until(async () => (await load()).guestReport?.runStartedAtMs === 60_000);
  assert.deepEqual((await load()).hostKeys?.keys, [other]);
});

test('what was on its way when the machine was reset is of the boot before', async (t) => {
  const { uuid, load, startDaemon } = await createLab(t);
  const machine = new FakeMachine(uuid, undefined, 40_000);
  const daemon = startDaemon(machine);
  const failed = { stage: null, errors: ['x'], recoverableErrors: [], stages: [] };
  // This report is being written when it is dropped.
  daemon.tell({ type: 'boot-result', result: failed }, 7);
  await daemon.reports.forget(uuid, () => {
    daemon.tell({ type: 'boot-result', result: failed }, 8);
    return Promise.resolve(9);
  });
  daemon.tell({ type: 'boot-result', result: failed }, 9);
  assert.equal(await daemon.boot(), null);
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  assert.equal((await load()).guestReport?.boot, null);
  // metad replays all events to the next daemon.
  const next = startDaemon(machine);
  next.tell({ type: 'boot-result', result: failed }, 7);
  await next.untilHeard(10);
  assert.equal(await next.boot(), null);
  daemon.tell({ type: 'boot-result', result: { ...failed, errors: [] } }, 10);
  assert.equal((await daemon.boot())?.status, 'done');
});

test('a boot that a reset ended stays ended where metad could not be asked for its last event', async (t) => {
  const { uuid, load, startDaemon } = await createLab(t);
  const machine = new FakeMachine(uuid, undefined, 40_000);
  const failed = { stage: null, errors: ['x'], recoverableErrors: [], stages: [] };
  const first = startDaemon(machine);
  first.tell({ type: 'boot-result', result: failed }, 7);
  await first.reports.forget(uuid, () => Promise.resolve(0));
  assert.equal((await load()).guestReport?.afterSequence, 7);
  const next = startDaemon(machine);
  next.tell({ type: 'boot-result', result: failed }, 7);
  await next.untilHeard(8);
  assert.equal(await next.boot(), null);
});

test('a daemon that adopts a machine counts nothing until the store told it which boot that is in', async (t) => {
  const { uuid, instances, startDaemon } = await createLab(t);
  const machine = new FakeMachine(uuid, undefined, 40_000);
  const failed = { stage: null, errors: ['x'], recoverableErrors: [], stages: [] };
  const first = startDaemon(machine);
  first.tell({ type: 'boot-result', result: failed }, 7);
  await first.reports.forget(uuid, () => Promise.resolve(9));

  let reads = 0;
  const next = startDaemon(machine, async (id) => {
    reads++;
    if (reads === 1) throw new Error('the store is away');
    if (reads === 2) return undefined;
    return await instances.findByUuid(id);
  });
  next.tell({ type: 'boot-result', result: failed }, 7);
  await next.untilHeard(10);
  assert.ok(reads >= 3, String(reads));
  assert.equal(await next.boot(), null, 'of the boot before');
  const { guestReport } = await instances
    .findByUuid(uuid)
    .then((record) => record ?? assert.fail());
  assert.equal(guestReport?.afterSequence, 9);
  next.tell({ type: 'boot-result', result: { ...failed, errors: [] } }, 11);
  assert.equal((await next.boot())?.status, 'done');
});

test('a reset before the record could be read ends what came until then', async (t) => {
  const { uuid, instances, startDaemon } = await createLab(t);
  const machine = new FakeMachine(uuid, undefined, 40_000);
  startDaemon(machine);
  const away = Promise.withResolvers<void>();
  const next = startDaemon(machine, async (id) => {
    await away.promise;
    return await instances.findByUuid(id);
  });
  next.tell(
    {
      type: 'boot-result',
      result: { stage: null, errors: ['x'], recoverableErrors: [], stages: [] },
    },
    7,
  );
  await next.reports.forget(uuid, () => Promise.resolve(0));
  next.tell({ type: 'ready', source: 'cloud-init', text: '' }, 8);
  const told = next.reports.nextChange(uuid, AbortSignal.timeout(WAIT_MS));
  away.resolve();
  await told;
  assert.equal(await next.readyAtMs(), 50_000);
  assert.equal(await next.boot(), null);
});

test('who waits is woken by what the guest says, by a reset, and by its end', async (t) => {
  const { uuid, startDaemon } = await createLab(t);
  const daemon = startDaemon(new FakeMachine(uuid, undefined, 40_000));
  const signal = AbortSignal.timeout(WAIT_MS);
  const said = daemon.reports.nextChange(uuid, signal);
  daemon.say();
  await said;
  const reset = daemon.reports.nextChange(uuid, signal);
  await daemon.reports.forget(uuid, () => Promise.resolve(0));
  await reset;
  const gone = daemon.reports.nextChange(uuid, signal);
  await daemon.keeper.kill(uuid);
  await gone;
  await daemon.reports.nextChange(uuid, AbortSignal.abort());
});
