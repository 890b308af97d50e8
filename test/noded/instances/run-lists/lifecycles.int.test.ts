import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { test } from 'node:test';

import { AppError } from '#shared/errors/app-error.ts';
import { collectRunLists } from '../../../../noded/instances/run-lists/collect-run-lists.ts';
import type { LifecyclesDependencies } from '../../../../noded/instances/run-lists/lifecycles-contract.ts';
import {
  LISTS,
  PARAMETERS,
  BOOT,
  BOOTED,
  createLifecycleLab,
} from '../../support/lifecycle-lab.ts';

/** From the first word of a decommissioning until the host cuts the power. */
const CUT_AFTER_MS = 480_000;

void test('a guest is shown its scripts in order, with inputs and parameters by name', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  const view = await lab.first.lifecycles.planView(await lab.instance(), PARAMETERS);
  assert.deepEqual(
    view?.lists.boot.map(({ name }) => name),
    ['01-base', '02-more'],
  );
  assert.deepEqual(view.env, {
    dbpw: { parameter: 'dbpw' },
    region: { parameter: 'region' },
    WHO: { text: 'me' },
    PASSWORD: { parameter: 'dbpw' },
  });
  assert.equal(view.status.state, 'booting');
});

void test('what has no run lists has no lifecycle, and nothing is written for it', async (t) => {
  const lab = await createLifecycleLab(t, null);
  await lab.start();
  assert.equal(await lab.first.lifecycles.planView(await lab.instance(), PARAMETERS), undefined);
  assert.equal(await lab.first.lifecycles.announce(lab.uuid, 'stop'), 0);
  assert.equal(lab.writes(), 0);
  assert.deepEqual(lab.views, []);
});

void test('state, script and exit status get into the record, and the guest sees the state', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  await lab.say(lab.first, ...BOOTED);
  const { lifecycle } = await lab.until((record) => record.lifecycle?.state === 'operational');
  assert.equal(lifecycle?.script, 'boot/02-more');
  assert.equal(lifecycle.exitStatus, 0);
  assert.equal(lab.first.lifecycles.isListening(lab.uuid), true);
  await lab.until(() => lab.views.at(-1)?.status.state === 'operational');
});

void test('a daemon that was killed in any state is followed by one that knows it', async (t) => {
  const leaving = { type: 'decommissioning', kind: 'stop' };
  const words = [
    ...BOOTED,
    leaving,
    { type: 'started', entry: 'decommission/01-leave' },
    { type: 'finished', entry: 'decommission/01-leave', status: 0 },
    { type: 'decommissioned' },
  ];
  const lab = await createLifecycleLab(t);
  await lab.start();
  let daemon = lab.first;
  for (const word of words) {
    await lab.say(daemon, word);
    const said = daemon.lifecycles.current(await lab.instance());
    assert.ok(said);
    await lab.until(({ lifecycle }) => lifecycle?.sequence === said.sequence);
    // The former daemon receives no events.
    daemon = lab.newDaemon();
    daemon.lifecycles.followAdopted({ machine: { uuid: lab.uuid, startedAtMs: 5 } });
    const view = await daemon.lifecycles.planView(await lab.instance(), PARAMETERS);
    assert.deepEqual(view?.progress, said.progress);
    assert.equal(view.status.state, said.state);
    assert.equal(view.status.deadlineMs, said.deadlineMs);
  }
  lab.endMachine();
  await lab.until(({ lifecycle }) => lifecycle?.state === 'decommissioned');
});

void test('a daemon that hears everything again changes nothing and writes no line twice', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  const told: Parameters<typeof lab.first.guestEvents.dispatch>[0][] = [];
  const stop = lab.first.guestEvents.subscribe(lab.uuid, (event, at) =>
    told.push({ event, sequence: at, instance: lab.uuid }),
  );
  await lab.say(lab.first, ...BOOTED.slice(0, 2));
  const { run } = lab.first.lifecycles.current(await lab.instance()) ?? {};
  assert.ok(run);
  lab.first.guestEvents.dispatch({
    ...{ sequence: lab.nextSequence(), instance: lab.uuid },
    event: {
      ...{ type: 'lifecycle-output', run, entry: 'boot/01-base', lostBytes: 0 },
      text: '2026-11-22T00:00:00Z *RS> Completed: boot/01-base\n\u001b[31mred\n',
    },
  });
  await lab.say(lab.first, ...BOOTED.slice(2));
  stop();
  await lab.until((record) => record.lifecycle?.state === 'operational');
  const audit = await lab.audit((text) => text.endsWith('Operational\n'));
  assert.match(audit, /RightScript: boot\/01-base\n {2}2026-\S+ \*RS> Completed: boot\/01-base\n/);
  assert.match(audit, /^ {2}\?\[31mred$/m);
  const second = lab.newDaemon();
  second.lifecycles.followAdopted({ machine: { uuid: lab.uuid, startedAtMs: 5 } });
  await second.lifecycles.planView(await lab.instance(), PARAMETERS);
  const before = await lab.instance();
  for (const event of told) second.guestEvents.dispatch(event);
  await lab.say(second, { type: 'decommissioning', kind: 'reboot' });
  await lab.until((record) => record.lifecycle?.state === 'decommissioning');
  const longer = await lab.audit((text) => text.length > audit.length);
  assert.equal(longer, `${audit}*RS> Decommissioning: reboot\n`);
  assert.equal(before.lifecycle?.run, (await lab.instance()).lifecycle?.run);
});

void test('operational said two hundred times is written once', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  await lab.say(lab.first, ...BOOTED);
  const { lifecycle } = await lab.until((record) => record.lifecycle?.state === 'operational');
  assert.ok(lifecycle);
  const before = lab.writes();
  const { progress, run } = lifecycle;
  for (let number = progress.number + 1; number < progress.number + 200; number += 1) {
    lab.first.guestEvents.dispatch({
      ...{ sequence: lab.nextSequence(), instance: lab.uuid },
      event: {
        type: 'lifecycle',
        event: { type: 'operational', run, boot: BOOT, number },
        progress: { ...progress, number },
      },
    });
  }
  await lab.until((record) => record.lifecycle?.sequence === lab.lastSequence());
  assert.ok(lab.writes() - before <= 2, `${lab.writes() - before} writes`);
});

void test('a script on demand is wanted until it ended, with its inputs nowhere but in the view', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  await lab.say(lab.first, ...BOOTED);
  const env = { TOKEN: { text: 'canary-of-an-input' } };
  const running = lab.first.lifecycles.run(
    await lab.instance(),
    { script: '01-backup', env },
    new AbortController().signal,
  );
  const wanted = async (): Promise<string> => {
    const view = await lab.first.lifecycles.planView(await lab.instance(), PARAMETERS);
    assert.equal(view?.status.next?.do, 'run');
    assert.deepEqual(view.commandEnv, env);
    return view.status.next.entry;
  };
  const entry = await wanted();
  await lab.say(lab.first, { type: 'started', entry }, { type: 'finished', entry, status: 4 });
  assert.equal(await running, 4);
  const view = await lab.first.lifecycles.planView(await lab.instance(), PARAMETERS);
  assert.equal(view?.status.next, null);
  assert.deepEqual(view.commandEnv, {});
  assert.equal(view.status.state, 'operational');
  assert.doesNotMatch(JSON.stringify(await lab.instance()), /canary/);
  assert.doesNotMatch(await lab.audit(), /canary/);
});

void test('a script on demand tells its own output while it runs, and none of another script', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  await lab.say(lab.first, ...BOOTED);
  const told: unknown[] = [];
  const running = lab.first.lifecycles.run(
    await lab.instance(),
    {
      script: '01-backup',
      env: {},
      onOutput: ({ text, lostBytes }) => told.push([text, lostBytes]),
    },
    new AbortController().signal,
  );
  const view = await lab.first.lifecycles.planView(await lab.instance(), PARAMETERS);
  assert.ok(view?.status.next);
  const { entry } = view.status.next;
  const print = (of: string, text: string, lostBytes: number): void =>
    lab.first.guestEvents.dispatch({
      ...{ sequence: lab.nextSequence(), instance: lab.uuid },
      event: { type: 'lifecycle-output', run: view.status.run, entry: of, text, lostBytes },
    });
  await lab.say(lab.first, { type: 'started', entry });
  print(entry, 'one\n', 0);
  print(randomUUID(), 'of another\n', 0);
  print(entry, 'two', 7);
  assert.deepEqual(told, [
    ['one\n', 0],
    ['two', 7],
  ]);
  await lab.say(lab.first, { type: 'finished', entry, status: 0 });
  assert.equal(await running, 0);
});

void test('a silent agent, a guest that boots and a shutdown end what is wanted', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  const { signal } = new AbortController();
  const request = { script: '01-backup', env: {} };
  const run = async (): Promise<number> =>
    lab.first.lifecycles.run(await lab.instance(), request, signal);
  await assert.rejects(run(), { code: 'INSTANCE_STATE' });
  await lab.say(lab.first, ...BOOTED);
  await assert.rejects(run(), { code: 'GUEST_AGENT_SILENT' });
  const running = assert.rejects(run(), { code: 'INSTANCE_STATE', message: /' is shutting down/ });
  await lab.first.lifecycles.announce(lab.uuid, 'stop');
  await running;
});

void test('who cancels a script takes back what is wanted', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  await lab.say(lab.first, ...BOOTED);
  const cancel = new AbortController();
  const request = { script: '01-backup', env: {} };
  const running = lab.first.lifecycles.run(await lab.instance(), request, cancel.signal);
  const view = await lab.first.lifecycles.planView(await lab.instance(), PARAMETERS);
  const entry = view?.status.next?.entry;
  await lab.say(lab.first, { type: 'started', entry });
  const aborted = once(cancel.signal, 'abort');
  cancel.abort(new Error('cancelled'));
  await aborted;
  await assert.rejects(running, /cancelled/);
  const after = await lab.first.lifecycles.planView(await lab.instance(), PARAMETERS);
  assert.equal(after?.status.next, null);
});

void test('a run lasts over a reboot and ends with a stop', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  const run = (await lab.until((record) => record.lifecycle !== null)).lifecycle?.run;
  lab.endMachine();
  await lab.until((record) => record.lifecycle?.state === 'failed');
  await lab.start(true);
  await lab.until((record) => record.lifecycle?.state === 'booting');
  assert.equal((await lab.instance()).lifecycle?.run, run);
  lab.endMachine();
  await lab.until((record) => record.lifecycle?.state === 'failed');
  await lab.start();
  await lab.until((record) => record.lifecycle?.state === 'booting');
  assert.notEqual((await lab.instance()).lifecycle?.run, run);
});

void test('a decommission list that is over its time has the power cut', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  await lab.say(lab.first, ...BOOTED, { type: 'decommissioning', kind: 'stop' });
  const { lifecycle } = await lab.until((record) => record.lifecycle?.state === 'decommissioning');
  assert.equal(lifecycle?.deadlineMs, lab.clock.now() + CUT_AFTER_MS);
  // A daemon that comes after the deadline finds it passed.
  lab.clock.advance(CUT_AFTER_MS);
  const second = lab.newDaemon({ replayGraceMs: 20 });
  second.lifecycles.followAdopted({ machine: { uuid: lab.uuid, startedAtMs: 5 } });
  const { lifecycle: after } = await lab.until((record) => record.lifecycle?.state === 'failed');
  assert.match(after?.reason ?? '', /within 180 s/);
  assert.equal(lab.kills(), 1);
});

void test('a guest that came back while no daemon was there keeps its power', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  await lab.say(lab.first, ...BOOTED, { type: 'decommissioning', kind: 'reboot' });
  await lab.until((record) => record.lifecycle?.state === 'decommissioning');
  lab.clock.advance(CUT_AFTER_MS + 60_000);
  const second = lab.newDaemon();
  second.lifecycles.followAdopted({ machine: { uuid: lab.uuid, startedAtMs: 5 } });
  // metad replays the events a little later.
  await second.lifecycles.planView(await lab.instance(), PARAMETERS);
  await lab.say(second, { type: 'decommissioned' }, { ...BOOTED[0], boot: randomUUID() });
  await lab.until((record) => record.lifecycle?.state === 'booting');
  assert.equal(lab.kills(), 0);
});

void test('a daemon that cannot hear its guests yet cuts no power, however long it takes to come up', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  await lab.say(lab.first, ...BOOTED, { type: 'decommissioning', kind: 'reboot' });
  await lab.until((record) => record.lifecycle?.state === 'decommissioning');
  lab.clock.advance(CUT_AFTER_MS + 60_000);
  const second = lab.newDaemon({ replayGraceMs: 1 }, false);
  second.lifecycles.followAdopted({ machine: { uuid: lab.uuid, startedAtMs: 5 } });
  await second.lifecycles.planView(await lab.instance(), PARAMETERS);
  // Timers are rung in the order of their times: one of the deadline would have rung.
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(lab.kills(), 0);
  second.lifecycles.hear();
  await lab.until((record) => record.lifecycle?.state === 'failed');
  assert.equal(lab.kills(), 1);
});

void test('a list that is changed while it runs is the guest’s with its next boot', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  await lab.say(lab.first, ...BOOTED.slice(0, 2));
  const own = { ...LISTS, boot: LISTS.boot.slice(1) };
  const namesOf = async (): Promise<readonly string[] | undefined> => {
    const view = await lab.first.lifecycles.planView(
      { ...(await lab.instance()), runLists: own },
      PARAMETERS,
    );
    return view?.lists.boot.map(({ name }) => name);
  };
  assert.deepEqual(await namesOf(), ['01-base', '02-more']);
  await lab.say(lab.first, ...BOOTED.slice(2));
  assert.equal(lab.first.lifecycles.state(lab.uuid), 'operational');
  assert.deepEqual(await namesOf(), ['01-more']);
});

void test('a clock that was set back does not lose a deadline', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  await lab.say(lab.first, ...BOOTED, { type: 'decommissioning', kind: 'stop' });
  await lab.until((record) => record.lifecycle?.state === 'decommissioning');
  lab.clock.advance(CUT_AFTER_MS - 1);
  const second = lab.newDaemon({ replayGraceMs: 1 });
  second.lifecycles.followAdopted({ machine: { uuid: lab.uuid, startedAtMs: 5 } });
  await second.lifecycles.planView(await lab.instance(), PARAMETERS);
  // Timers are rung in the order of their times: after this one it has rung, a millisecond early.
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(second.lifecycles.state(lab.uuid), 'decommissioning');
  lab.clock.advance(1);
  await lab.until((record) => record.lifecycle?.state === 'failed');
  assert.equal(lab.kills(), 1);
});

void test('a guest that changes its state without end has no more than one view waiting', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  await lab.say(lab.first, BOOTED[0] ?? {});
  const { run, progress } = lab.first.lifecycles.current(await lab.instance()) ?? {};
  assert.ok(run !== undefined && progress !== undefined);
  for (let count = 0; count < 200; count += 1) {
    const boot = randomUUID();
    for (const [number, type] of [[1, 'booting'] as const, [2, 'stranded'] as const]) {
      lab.first.guestEvents.dispatch({
        ...{ sequence: lab.nextSequence(), instance: lab.uuid },
        event: {
          ...{ type: 'lifecycle', event: { type, run, boot, number } },
          progress: { ...progress, boot, number },
        },
      });
    }
  }
  await lab.first.lifecycles.announce(lab.uuid, 'stop');
  assert.equal(lab.views.at(-1)?.status.next?.do, 'stop');
  assert.ok(lab.published() <= 4, `${lab.published()} views`);
});

void test('lists that cannot be read any more leave a guest those that it has', async (t) => {
  const lab = await createLifecycleLab(t);
  let isBad = false;
  const collect: LifecyclesDependencies['collect'] = ({ runLists: own }) =>
    isBad
      ? Promise.reject(new AppError('RUN_LIST_INVALID', 'README has no interpreter'))
      : collectRunLists({ clusterDir: '/nonexistent', osPath: null, own });
  const daemon = lab.newDaemon({ collect });
  await daemon.lifecycles.begin(await lab.instance(), false);
  const before = await daemon.lifecycles.planView(await lab.instance(), PARAMETERS);
  assert.equal(before?.lists.boot.length, 2);
  isBad = true;
  const after = await daemon.lifecycles.planView(await lab.instance(), PARAMETERS);
  assert.deepEqual(after, before);
  await assert.rejects(daemon.lifecycles.begin(await lab.instance(), false), {
    code: 'RUN_LIST_INVALID',
  });
  // A daemon that never read the lists still shows the guest the rest of its view.
  const next = lab.newDaemon({ collect });
  assert.equal(await next.lifecycles.planView(await lab.instance(), PARAMETERS), undefined);
});

void test('a stop waits for the decommission list of a guest that listens, until it is withdrawn', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  const { lifecycles } = lab.first;
  assert.equal(await lifecycles.announce(lab.uuid, 'stop'), 0);
  await lab.say(lab.first, ...BOOTED);
  await lab.until((record) => record.lifecycle?.state === 'operational');
  assert.ok((await lifecycles.announce(lab.uuid, 'stop')) > 0);
  await lab.until(({ lifecycle }) => lifecycle?.announced?.do === 'stop');
  await lifecycles.withdraw(lab.uuid);
  await lab.until(({ lifecycle }) => lifecycle?.announced === null);
  const views = lab.views.length;
  await lifecycles.withdraw(lab.uuid);
  assert.equal(lab.views.length, views);
});

void test('what a job of the former daemon announced is taken back', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  await lab.say(lab.first, ...BOOTED);
  await lab.first.lifecycles.announce(lab.uuid, 'reboot');
  await lab.until(({ lifecycle }) => lifecycle?.announced?.do === 'reboot');
  const second = lab.newDaemon();
  second.lifecycles.followAdopted({ machine: { uuid: lab.uuid, startedAtMs: 5 } });
  await lab.until(({ lifecycle }) => lifecycle?.announced === null);
  await lab.until(() => lab.views.at(-1)?.status.next === null);
});

void test('a running instance whose lists are taken away has no lifecycle any more', async (t) => {
  const lab = await createLifecycleLab(t);
  await lab.start();
  await lab.say(lab.first, ...BOOTED);
  await lab.until((record) => record.lifecycle?.state === 'operational');
  const without = { ...(await lab.instance()), runLists: null };
  assert.equal(await lab.first.lifecycles.planView(without, PARAMETERS), undefined);
  assert.equal(lab.first.lifecycles.state(lab.uuid), undefined);
  assert.equal(lab.first.lifecycles.isListening(lab.uuid), false);
  await lab.until((record) => record.lifecycle === null);
});
