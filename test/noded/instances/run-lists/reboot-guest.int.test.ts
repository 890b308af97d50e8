import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LifecycleRecord, LifecycleState } from '#shared/contract/lifecycle.ts';
import {
  rebootGuest,
  type RebootedGuest,
} from '../../../../noded/instances/run-lists/reboot-guest.ts';

const REASON = 'its decommission list did not end within 180 s';

/** Reboots a guest that is in these states, look by look, and then resets or is off. */
async function reboot(
  states: readonly LifecycleState[],
  end: 'reset' | 'off' = 'reset',
): Promise<RebootedGuest | null> {
  let look = -1;
  const last = states.length - 1;
  const record = { kind: 'reboot', reason: REASON } as LifecycleRecord; // the members that are read
  const machine = {
    uuid: 'u',
    get guestResets() {
      return end === 'reset' && look >= last ? 1 : 0;
    },
    isRunning: () => {
      look += 1;
      return end === 'reset' || look <= last;
    },
  };
  const lifecycles = {
    announce: async () => 240,
    state: () => states[look],
    current: () => record,
    reset: () => undefined,
  };
  return await rebootGuest(
    { instanceName: 'web1', machine },
    120,
    { lifecycles, clock: { now: () => 0, monotonicMs: () => 0 } },
    { signal: new AbortController().signal, report: { log: () => undefined } },
  );
}

test('a reboot after a list that ended has no failure', async () => {
  assert.deepEqual(await reboot(['operational', 'decommissioning', 'decommissioned']), {
    failure: null,
  });
});

test('a reboot after a list that was ended at its limit tells so', async () => {
  assert.deepEqual(await reboot(['decommissioning', 'failed']), { failure: REASON });
  // An adopted QEMU may not have told its reset.
  assert.deepEqual(await reboot(['failed', 'booting', 'booting', 'booting']), { failure: REASON });
});

test('a guest that resets in the middle of its list tells so', async () => {
  assert.match((await reboot(['decommissioning']))?.failure ?? '', /before its decommission list/);
});

test('a guest that goes off did not reboot', async () => {
  assert.equal(await reboot(['decommissioning', 'failed'], 'off'), null);
});
