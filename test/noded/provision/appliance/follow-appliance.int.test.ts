import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import {
  ApplianceFailure,
  hasNeverComeUp,
} from '../../../../noded/provision/appliance/follow-appliance.ts';
import {
  agentStarted,
  everyPlan,
  failure,
  playAppliances,
  rejected,
  settle,
} from '../../support/played-appliance.ts';

const appliances = playAppliances();
const { follow } = appliances;

test('success is a result and then a power-off; the machine is gone and nobody listens any more', async () => {
  const run = follow();
  run.say(agentStarted);
  run.say({ type: 'stage-started', atMs: 2000, stage: 'image' });
  run.say({ type: 'stage-finished', atMs: 5000, stage: 'image', summary: '1 GiB written' });
  run.succeed();
  await settle();
  run.machine.end('guest-shutdown');
  await run.running;
  assert.deepEqual(
    run.timings
      .filter(({ stage }) => !everyPlan.includes(stage))
      .map(({ stage, durationMs, summary }) => [stage, durationMs, summary]),
    [
      [
        'boot-appliance',
        0,
        'agent started 1.50 s after the kernel, 0.60 s after the first process',
      ],
      ['image', 3000, '1 GiB written'],
      ['shutdown-appliance', 0, 'powered off'],
    ],
  );
  assert.deepEqual(run.stages, ['image', 'shutdown-appliance']);
  assert.equal(run.isListening(), false);
  assert.equal(run.machine.isRunning(), false);
});

for (const reason of ['crashed', 'guest-reboot', 'guest-panic', 'host-request'] as const) {
  test(`a result of success is worth nothing when the machine ends by ${reason}`, async () => {
    const run = follow();
    run.succeed();
    await settle();
    run.machine.end(reason);
    assert.equal((await rejected(run.running)).code, 'APPLIANCE_CRASHED');
  });
}

test('a machine that has ended may still have a result on its way', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const run = follow();
  run.machine.end('guest-shutdown');
  await settle();
  t.mock.timers.tick(2_000);
  run.succeed();
  await run.running;
  assert.equal(run.timings.at(-1)?.stage, 'shutdown-appliance');
});

test('a power-off without a result is a failure, and the console is in the log', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const run = follow();
  run.machine.end('guest-shutdown', { consoleTail: 'Kernel command line\r\nreboot: Power down' });
  await settle();
  t.mock.timers.tick(10_000);
  assert.equal((await rejected(run.running)).code, 'APPLIANCE_NO_RESULT');
  assert.deepEqual(appliances.log.tail().slice(-2), [
    'console: Kernel command line',
    'console: reboot: Power down',
  ]);
});

test('a crash before the result is told as one', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const run = follow();
  run.machine.end('crashed', { exitStatus: null, signal: 'SIGSEGV', stderrTail: 'qemu: died' });
  await settle();
  t.mock.timers.tick(10_000);
  const error = await rejected(run.running);
  assert.equal(error.code, 'APPLIANCE_CRASHED');
  assert.match(error.message, /SIGSEGV/);
});

test('a failure that the agent reports keeps its code, stage and hint, and the machine is killed', async () => {
  const run = follow();
  run.say(failure('SCRIPT_FAILED', 'untrusted/create ended with status 7'));
  const error = await rejected(run.running);
  assert.equal(error.code, 'SCRIPT_FAILED');
  assert.equal(error.message, 'untrusted/create ended with status 7');
  assert.equal(error.hint, 'look');
  assert.ok(error instanceof ApplianceFailure && error.stage === 'os-scripts');
  assert.equal(run.machine.kills, 1);
});

test('an appliance that never reports ends after the boot timeout', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const run = follow();
  run.machine.consoleTail = 'Booting SMP configuration';
  t.mock.timers.tick(119_999);
  await settle();
  assert.equal(run.machine.kills, 0);
  t.mock.timers.tick(1);
  const error = await rejected(run.running);
  assert.equal(error.code, 'APPLIANCE_NO_RESULT');
  assert.equal(run.machine.kills, 1);
  assert.deepEqual(appliances.log.tail(), ['console: Booting SMP configuration']);
});

test('only a machine that hung or died before its agent ran has never come up', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const silent = follow();
  t.mock.timers.tick(120_000);
  assert.ok(hasNeverComeUp(await rejected(silent.running)));
  for (const [spoken, expected] of [
    [[], true],
    [[agentStarted], false],
  ] as const) {
    const died = follow();
    for (const event of spoken) died.say(event);
    died.machine.end('crashed', { exitStatus: null, signal: 'SIGSEGV' });
    await settle();
    t.mock.timers.tick(10_000);
    assert.equal(hasNeverComeUp(await rejected(died.running)), expected);
  }
  const poweredOff = follow();
  poweredOff.machine.end('guest-shutdown');
  await settle();
  t.mock.timers.tick(10_000);
  assert.ok(!hasNeverComeUp(await rejected(poweredOff.running)));
  const cancelled = follow({
    signal: AbortSignal.abort(new AppError('JOB_CANCELED', 'cancelled')),
  });
  assert.ok(!hasNeverComeUp(await rejected(cancelled.running)));
});

test('once the agent has spoken, the boot timeout no longer counts', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const run = follow();
  run.say(agentStarted);
  await settle();
  t.mock.timers.tick(3_600_000);
  run.succeed();
  await settle();
  run.machine.end('guest-shutdown');
  await run.running;
});

test('an appliance that does not power off after its result is a failure', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const run = follow();
  run.succeed();
  await settle();
  t.mock.timers.tick(60_000);
  assert.equal((await rejected(run.running)).code, 'APPLIANCE_CRASHED');
  assert.equal(run.machine.kills, 1);
});

test('cancelling kills the machine and fails with the reason, before and after the result', async () => {
  for (const isAfterResult of [false, true]) {
    const controller = new AbortController();
    const run = follow({ signal: controller.signal });
    if (isAfterResult) run.succeed();
    await settle();
    const reason = new AppError('JOB_CANCELED', 'job 1 was cancelled');
    controller.abort(reason);
    assert.equal(await rejected(run.running), reason);
    assert.equal(run.machine.kills, 1);
  }
});

test('a run that was cancelled before it began fails at once', async () => {
  const reason = new AppError('JOB_CANCELED', 'job 1 was cancelled');
  const run = follow({ signal: AbortSignal.abort(reason) });
  assert.equal(await rejected(run.running), reason);
});

test('progress is passed on and names the stage', async () => {
  const run = follow();
  run.say({ type: 'progress', atMs: 1, stage: 'image', doneBytes: 10, totalBytes: 20 });
  run.succeed();
  await settle();
  run.machine.end('guest-shutdown');
  await run.running;
  assert.ok(run.reported.includes('progress image 10'));
});
