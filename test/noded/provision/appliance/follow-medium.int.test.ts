import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { InstallEvent } from '#shared/contract/install-event.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import type { MediumSuccess } from '#shared/contract/primitives.ts';
import { createMask } from '#shared/secret/mask.ts';
import { InstallLog } from '../../../../noded/host/install-log.ts';
import { followMedium } from '../../../../noded/provision/appliance/follow-medium.ts';
import { FakeMachine } from '../../support/fake-machine.ts';

const installId = '11111111-2222-4333-8444-555555555555';
const done: InstallEvent = { type: 'result', atMs: 9, outcome: { status: 'success' } };
const gaveUp: InstallEvent = {
  type: 'result',
  atMs: 9,
  outcome: {
    ...{ status: 'failure', stage: 'os-scripts', code: 'SCRIPT_FAILED' },
    message: 'no partition for hunter2!',
  },
};

/** Starts a run in which the test plays the medium. */
async function follow(t: TestContext, success: MediumSuccess = 'report') {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-medium-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, 'log');
  const log = await InstallLog.create(path, createMask(['hunter2!']));
  t.after(() => log.close());
  const machine = new FakeMachine();
  const controller = new AbortController();
  let listener: ((event: MetadEvent['event']) => void) | undefined;
  const nothing = (): void => undefined;
  const running = followMedium({
    ...{ installId, machine, success, log },
    context: {
      jobId: 1,
      signal: controller.signal,
      report: {
        ...{ log: nothing, waits: nothing, stageStarted: nothing },
        ...{ stageFinished: nothing, progress: nothing, output: nothing },
        scriptOutput: nothing,
      },
    },
    subscribe: (subscriber) => {
      listener = subscriber;
      return () => (listener = undefined);
    },
  });
  // Each test awaits `running` later; this prevents an unhandled rejection.
  running.catch(nothing);
  const say = (event: InstallEvent, of = installId): void =>
    listener?.({ type: 'install', installId: of, event });
  const readLog = async (): Promise<string> => {
    await log.flush();
    return readFile(path, 'utf8');
  };
  return { machine, running, say, controller, readLog };
}

test('its word and its end are success', async (t) => {
  for (const [end, words] of [
    ['guest-shutdown', /reported success and powered off/],
    ['guest-reboot', /reported success and rebooted/],
  ] as const) {
    const { machine, running, say } = await follow(t);
    say(done);
    machine.end(end);
    assert.match(await running, words);
  }
});

test('a word that comes right after the end counts; the word of another installation does not', async (t) => {
  const late = await follow(t);
  late.machine.end('guest-shutdown');
  setImmediate(() => late.say(done));
  assert.match(await late.running, /reported success/);

  const other = await follow(t);
  other.say(done, '99999999-2222-4333-8444-555555555555');
  other.machine.end('guest-shutdown');
  await assert.rejects(other.running, { code: 'APPLIANCE_NO_RESULT' });
});

test('an end without a word is success only when the operator says so', async (t) => {
  const [silent, enough] = [await follow(t), await follow(t, 'poweroff')];
  silent.machine.end('guest-reboot');
  enough.machine.end('guest-reboot');
  await assert.rejects(silent.running, {
    code: 'APPLIANCE_NO_RESULT',
    message: 'the medium rebooted without reporting a result',
  });
  assert.match(await enough.running, /rebooted, which counts as success/);
});

test('a failure that it reports is one, whatever counts as success, behind a success and late too', async (t) => {
  const masked = { code: 'SCRIPT_FAILED', message: /^no partition for <redacted>$/ };
  const at = await follow(t, 'poweroff');
  at.say(done);
  at.say(gaveUp);
  await assert.rejects(at.running, masked);
  assert.equal(at.machine.isRunning(), false);
  const late = await follow(t, 'poweroff');
  late.machine.end('guest-shutdown');
  setImmediate(() => late.say(gaveUp));
  await assert.rejects(late.running, masked);
});

test('a crash is none, though it said that it is done; a job that ends takes the machine with it', async (t) => {
  const crashed = await follow(t, 'poweroff');
  crashed.say(done);
  crashed.machine.end('crashed');
  await assert.rejects(crashed.running, { code: 'APPLIANCE_CRASHED' });
  assert.match(await crashed.readLog(), /^console: /m);
  const ended = await follow(t);
  ended.controller.abort(new Error('over'));
  await assert.rejects(ended.running, /over/);
  assert.equal(ended.machine.isRunning(), false);
});
