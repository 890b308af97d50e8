import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import type { LifecycleStatus, ViewLifecycle } from '#shared/contract/lifecycle.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import { ChannelLab, type Guest } from './support/channel-lab.ts';
import { eventsUntil } from './support/control-events.ts';
import { GuestSystem, type SystemKind } from './support/guest-system.ts';
import { lifecycleOf, scriptOf } from './support/lifecycle-fixture.ts';
import { exampleView } from './support/view-fixture.ts';

/** The agent in guests without systemd. */

const lists: ViewLifecycle['lists'] = {
  boot: [],
  operational: [],
  decommission: [scriptOf('01-leave', 'echo "because of $DECOM_REASON"')],
};

let lab: ChannelLab;
let guest: Guest;
let revision = 1;
const view = exampleView();

before(async () => {
  lab = await ChannelLab.create();
  guest = await lab.addGuest(view.channel);
});
after(() => lab[Symbol.asyncDispose]());

async function serve(status: Partial<LifecycleStatus>): Promise<void> {
  revision += 1;
  const lifecycle = lifecycleOf({ lists, ...status });
  assert.equal((await lab.put({ ...view, revision, lifecycle })).status, 204);
}

async function createSystem(t: TestContext, kind: Partial<SystemKind>): Promise<GuestSystem> {
  await lab.control('DELETE', `/v1/instances/${view.uuid}`);
  await serve({});
  const system = await GuestSystem.create(guest.namespace, {
    ...{ shell: 'dash', downloader: 'curl' },
    ...kind,
  });
  t.after(() => system[Symbol.asyncDispose]());
  const path = `/v1/instances/${view.uuid}/tree/ganeti/latest/guest/enable`;
  await system.write('enable', (await lab.control('GET', path)).body.toString());
  return system;
}

function wordsOf(events: readonly MetadEvent[]): readonly string[] {
  return events.flatMap(({ event }) => {
    if (event.type === 'lifecycle-output') return [event.text];
    return event.type === 'lifecycle' ? [event.event.type] : [];
  });
}

async function lastSequence(): Promise<number> {
  const { body } = await lab.control('GET', '/v1/status');
  return (JSON.parse(body.toString()) as { lastSequence: number }).lastSequence;
}

async function wordsUntil(since: number, last: string): Promise<readonly string[]> {
  return wordsOf(await eventsUntil(lab, since, (events) => wordsOf(events).includes(last)));
}

test('sysvinit starts the agent in each boot, and runs the decommission list with the reason', async (t) => {
  const system = await createSystem(t, { hasInitScripts: true });
  let since = await lastSequence();
  await system.boot('sh /var/lib/enable && sh /var/lib/enable');
  assert.deepEqual(await wordsUntil(since, 'operational'), ['booting', 'operational'], system.log);
  for (const [level, reason] of [
    ['6', 'reboot'],
    ['0', 'stop'],
  ] as const) {
    since = await lastSequence();
    await serve({ state: 'operational' });
    const rc = [
      // Like init, with the scripts of a runlevel and of the boot runlevel.
      'until [ -e /run/go ]; do sleep 0.1; done',
      `for script in /etc/rc${level}.d/K*; do RUNLEVEL=${level} "$script" stop; done`,
      'echo ended >/var/lib/ended',
    ].join('; ');
    await serve({});
    await system.boot(`for script in /etc/rc2.d/S*; do "$script" start; done; { ${rc}; } &`);
    assert.deepEqual(
      await wordsUntil(since, 'operational'),
      ['booting', 'operational'],
      system.log,
    );
    since = await lastSequence();
    await serve({ state: 'operational' });
    await system.writeRun('go', '');
    assert.deepEqual(
      await wordsUntil(since, 'decommissioned'),
      ['decommissioning', 'started', `because of ${reason}\n`, 'finished', 'decommissioned'],
      system.log,
    );
  }
});

test('a guest without curl and wget logs an error, and its agent starts when curl is installed', async (t) => {
  const system = await createSystem(t, { downloader: 'none' });
  const since = await lastSequence();
  await system.boot('sh /var/lib/enable; echo $? >/var/lib/status');
  while ((await system.read('status')) === null)
    await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(await system.read('status'), '1\n');
  assert.match(system.log, /^guest\/enable: curl and wget are missing/m);
  assert.match(system.log, /^guest\/enable: neither systemd, OpenRC nor sysvinit was found/m);
  await system.add('curl');
  assert.deepEqual(await wordsUntil(since, 'operational'), ['booting', 'operational'], system.log);
});
