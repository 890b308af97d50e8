import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { powerOff } from '../../../noded/instances/power-off.ts';
import { FakeMachine } from '../support/fake-machine.ts';

/** Longer than a test may take. */
const TIMEOUT_S = 3600;

/** A guest that stands still because its disk was full. */
class HaltedMachine extends FakeMachine {
  readonly #hasRoom: boolean;

  constructor(hasRoom: boolean) {
    super();
    this.#hasRoom = hasRoom;
    this.halt = { reason: 'disk-full', sinceMs: 0 };
  }

  override async resume(): Promise<void> {
    const { halt } = this;
    await super.resume();
    // The write is tried once more, and fails as it did before.
    if (!this.#hasRoom) this.halt = halt;
  }

  override async powerdown(): Promise<void> {
    if (this.halt === null) this.end('guest-shutdown');
  }
}

async function off(machine: FakeMachine, timeoutS = TIMEOUT_S): Promise<readonly string[]> {
  const said: string[] = [];
  await powerOff(
    { machine, kind: 'run', instanceName: 'web1', device: null, isOrphan: false },
    timeoutS,
    {
      keeper: {
        kill: async () => void (await machine.kill()),
        whenGone: async () => void (await machine.exited),
      },
      clock: systemClock,
    },
    {
      signal: new AbortController().signal,
      report: { log: (text) => void said.push(text) },
    },
  );
  return said;
}

test('a guest that stands still at a full disk is not waited for', async () => {
  const machine = new HaltedMachine(false);
  const said = await off(machine);
  assert.equal(machine.kills, 1);
  assert.match(said.join(), /web1 stands still at a write that failed \(disk-full\).*cutting/);
});

test('a guest that stood still while there was no room is let go on, and obeys', async () => {
  const machine = new HaltedMachine(true);
  assert.deepEqual(await off(machine), []);
  assert.deepEqual([machine.kills, machine.resumes], [0, 1]);
});

test('no guest is asked when there is no time for it to obey', async () => {
  const machine = new HaltedMachine(true);
  assert.deepEqual(await off(machine, 0), []);
  assert.deepEqual([machine.kills, machine.resumes], [1, 0]);
});
