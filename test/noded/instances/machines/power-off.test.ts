import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Clock, systemClock } from '#shared/clock/clock.ts';
import type { PowerButton } from '../../../../noded/vmm/power-button.ts';
import { powerOff } from '../../../../noded/instances/machines/power-off.ts';
import { FakeMachine } from '../../support/fake-machine.ts';

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

/** A guest with the given states of its button. The last one stays. */
class ListeningMachine extends FakeMachine {
  readonly #answers: (PowerButton | undefined)[];
  readonly #pressesNeeded: number;
  presses = 0;

  constructor(answers: readonly (PowerButton | undefined)[], pressesNeeded = 1) {
    super();
    this.#answers = [...answers];
    this.#pressesNeeded = pressesNeeded;
  }

  override powerButton(): Promise<PowerButton | undefined> {
    const [answer] = this.#answers;
    if (this.#answers.length > 1) this.#answers.shift();
    return Promise.resolve(answer);
  }

  override async powerdown(): Promise<void> {
    this.presses += 1;
    if (this.presses === this.#pressesNeeded) this.end('guest-shutdown');
  }
}

/** A second passes between two looks at it. */
function quickClock(): Clock {
  let nowMs = 0;
  return { ...systemClock, monotonicMs: () => (nowMs += 1000) };
}

async function off(
  machine: FakeMachine,
  timeoutS = TIMEOUT_S,
  clock: Clock = systemClock,
  signal = new AbortController().signal,
): Promise<readonly string[]> {
  const said: string[] = [];
  await powerOff(
    { machine, kind: 'run', instanceName: 'web1', device: null, isOrphan: false, lostSecrets: [] },
    timeoutS,
    {
      keeper: {
        kill: async () => void (await machine.kill()),
        whenGone: async () => void (await machine.exited),
      },
      clock,
    },
    {
      signal,
      report: { log: (text) => void said.push(text) },
    },
  );
  return said;
}

test('a guest that stands still at a full disk is not waited for', async () => {
  const machine = new HaltedMachine(false);
  const said = await off(machine);
  assert.equal(machine.kills, 1);
  assert.match(said.join(), /web1 is paused at a failed write \(disk-full\).*cutting/);
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

test('where no operating system knows the button, nobody is waited for', async () => {
  const machine = new ListeningMachine(['no-acpi']);
  const said = await off(machine, TIMEOUT_S, quickClock());
  assert.deepEqual([machine.kills, machine.presses], [1, 0]);
  assert.match(said.join(), /web1 runs no operating system that reacts to the power button/);
});

test('a guest that is still booting is asked as soon as it listens', async () => {
  const machine = new ListeningMachine(['no-acpi', 'not-heard', 'not-heard', 'heard']);
  assert.deepEqual(await off(machine, TIMEOUT_S, quickClock()), []);
  assert.deepEqual([machine.kills, machine.presses], [0, 1]);
});

test('a press that nobody took is repeated, also where QEMU cannot tell who listens', async () => {
  for (const answer of ['heard', undefined] as const) {
    const machine = new ListeningMachine([answer], 2);
    assert.deepEqual(await off(machine, TIMEOUT_S, quickClock()), []);
    assert.deepEqual([machine.kills, machine.presses], [0, 2]);
  }
});

test('one that listens and does not obey is cut off at its time', async () => {
  const machine = new ListeningMachine(['heard'], Number.POSITIVE_INFINITY);
  const said = await off(machine, 60, quickClock());
  assert.match(said.join(), /web1 did not obey within 60 s/);
  assert.equal(machine.kills, 1);
});

test('a QEMU that does not answer takes no more time than the guest has, and a cancel is heard', async () => {
  class Wedged extends FakeMachine {
    override powerButton(): Promise<PowerButton | undefined> {
      return new Promise(() => undefined);
    }
  }
  const machine = new Wedged();
  const begunMs = performance.now();
  const said = await off(machine, 0.3);
  assert.match(said.join(), /did not obey within 0\.3 s/);
  assert.ok(performance.now() - begunMs < 5_000);
  await assert.rejects(off(new Wedged(), TIMEOUT_S, systemClock, AbortSignal.timeout(100)));
});
