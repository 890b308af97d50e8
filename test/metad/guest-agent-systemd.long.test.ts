import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LifecycleStatus, ViewLifecycle } from '#shared/contract/lifecycle.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import { ChannelLab } from './support/channel-lab.ts';
import { eventsUntil } from './support/control-events.ts';
import { lifecycleOf, scriptOf } from './support/lifecycle-fixture.ts';
import { SystemdGuest } from './support/systemd-guest.ts';
import { exampleView } from './support/view-fixture.ts';

/** The agent as a unit of a real systemd, which reports why it stops. */

const DOWN_TIMEOUT_MS = 60_000;
const LAST = '33333333-3333-4333-8333-333333333333';
const lists: ViewLifecycle['lists'] = {
  boot: [scriptOf('01-limit', 'systemctl show rightlink -p TimeoutStopUSec')],
  operational: [],
  decommission: [scriptOf('01-leave', 'echo "because of $DECOM_REASON"')],
};

function toldIn(events: readonly MetadEvent[]): readonly string[] {
  return events.flatMap(({ event }) => {
    if (event.type === 'lifecycle-output') return [event.text];
    return event.type === 'lifecycle' ? [event.event.type] : [];
  });
}

test('a systemd that goes down, or stops the agent alone, has the decommission list run first, with its reason', async (t) => {
  const lab = await ChannelLab.create();
  t.after(() => lab[Symbol.asyncDispose]());
  const view = exampleView();
  const guest = await lab.addGuest(view.channel);
  let revision = 1;
  const serve = async (status: Partial<LifecycleStatus>): Promise<void> => {
    revision += 1;
    const lifecycle = lifecycleOf({ lists, decommissionTimeoutS: 2000, ...status });
    assert.equal((await lab.put({ ...view, revision, lifecycle })).status, 204);
  };
  await serve({});
  const path = `/v1/instances/${view.uuid}/tree/ganeti/latest/guest/enable`;
  const system = await SystemdGuest.create(
    guest.namespace,
    (await lab.control('GET', path)).body.toString(),
  );
  // Before the lab, whose namespace it is in.
  t.after(() => system[Symbol.asyncDispose]());
  const untilTold = async (since: number, last: string): Promise<readonly string[]> =>
    toldIn(await eventsUntil(lab, since, (events) => toldIn(events).includes(last)));
  const now = async (): Promise<number> => {
    const { body } = await lab.control('GET', '/v1/status');
    return (JSON.parse(body.toString()) as { lastSequence: number }).lastSequence;
  };

  for (const [how, reason] of [
    ['systemctl reboot', 'reboot'],
    ['systemctl poweroff', 'stop'],
    [null, 'terminate'],
    ['systemctl restart rightlink', 'service_restart'],
  ] as const) {
    let since = await now();
    await serve({});
    await system.boot();
    assert.deepEqual(
      (await untilTold(since, 'operational')).filter((told) => !told.startsWith('Timeout')),
      ['booting', 'started', 'finished', 'operational'],
      system.log,
    );
    since = await now();
    await serve({
      state: 'operational',
      ...(how === null && { next: { do: 'terminate', entry: LAST } as const }),
    });
    if (how !== null) await system.run(how);
    assert.deepEqual(await untilTold(since, 'decommissioned'), [
      ...['decommissioning', 'started', `because of ${reason}\n`, 'finished', 'decommissioned'],
    ]);
    if (reason === 'service_restart') {
      // A restart in the same boot does not run the list again.
      await serve({ state: 'decommissioned', kind: 'service_restart' });
      assert.equal((await untilTold(since, 'operational')).at(-1), 'operational');
      assert.equal(
        (await untilTold(since, 'operational')).filter((told) => told === 'started').length,
        1,
      );
      // After a kill it also restarts, and reports events that the host has forgotten.
      await system.run('systemctl kill -s KILL rightlink');
      since = await now();
      await serve({});
      assert.deepEqual(await untilTold(since, 'operational'), ['operational']);
    } else await system.ended(DOWN_TIMEOUT_MS);
  }
});
