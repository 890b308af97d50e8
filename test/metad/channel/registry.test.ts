import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { EventLog } from '../../../metad/channel/event-log.ts';
import { Registry } from '../../../metad/channel/registry.ts';
import { parseView } from '../../../metad/view/served-view.ts';
import { exampleView } from '../support/view-fixture.ts';

test('events of a former guest are dropped when the instance gets a new device', async () => {
  const events = new EventLog(1);
  const registry = new Registry({
    events,
    clock: systemClock,
    open: (_, device) =>
      Promise.resolve({
        ...{ device, isCurrent: () => true },
        ...{ setHopLimit: () => undefined, setServices: () => undefined },
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }),
  });
  const put = (device: string, revision: number): Promise<void> => {
    const view = exampleView();
    const channel = { ...view.channel, device };
    return registry.put(parseView({ ...view, revision, channel }));
  };
  await put('gnt.com.0', 1);
  const { uuid } = exampleView();
  events.append(uuid, { type: 'ready', source: 'guest', text: '' });
  await put('gnt.com.0', 2);
  assert.equal(events.recordsAfter(0).length, 1, 'another view of the same machine');
  await put('gnt.com.1', 3);
  assert.deepEqual(events.recordsAfter(0), []);
});

test('only a guest that is not up begins anew with a view', async () => {
  const registry = new Registry({
    ...{ events: new EventLog(1), clock: systemClock },
    open: (_, device) =>
      Promise.resolve({
        ...{ device, isCurrent: () => true },
        ...{ setHopLimit: () => undefined, setServices: () => undefined },
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }),
  });
  const put = (revision: number, isGuestUp: boolean) =>
    registry.put(parseView(exampleView({ revision })), { isGuestUp });
  await put(1, true);
  const { uuid } = exampleView();
  assert.equal(registry.get(uuid)?.isInherited, true, 'it runs, and was not served here');
  await put(2, true);
  assert.equal(registry.get(uuid)?.isInherited, true);
  await put(3, false);
  assert.equal(registry.get(uuid)?.isInherited, false);
  await assert.rejects(put(2, true), { code: 'CONFLICT' });
  await registry.remove(uuid);
  assert.deepEqual(registry.instances(), []);
});
