import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import type { InstallEvent, InstallReport } from '#shared/contract/install-event.ts';
import type { StageTiming } from '#shared/contract/instance.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import type { InstallPlan } from '#shared/contract/plan.ts';
import type { InstallStage } from '#shared/contract/primitives.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { signEvent } from '#shared/secret/event-signature.ts';
import { createMask } from '#shared/secret/mask.ts';
import {
  ApplianceFailure,
  followAppliance,
  hasNeverComeUp,
} from '../../../noded/appliance/follow-appliance.ts';
import { InstallLog } from '../../../noded/host/install-log.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { FakeMachine } from '../support/fake-machine.ts';

// Every way in which an appliance can end, around one appliance that is played: longer than most
// files, since each test is a few reports and what follows from them.

const installId = '11111111-2222-4333-8444-555555555555';
const success: InstallEvent = { type: 'result', atMs: 9, outcome: { status: 'success' } };
const KEY = 'ab'.repeat(32);
const agentStarted: InstallEvent = {
  type: 'agent-started',
  atMs: 1500,
  userSpaceAtMs: 900,
  agentVersion: '1',
  key: KEY,
};
const finished = (stage: InstallStage, atMs = 5): InstallEvent => ({
  type: 'stage-finished',
  atMs,
  stage,
  summary: 'done',
});
/** What the plan below, and every other, asks for. */
const everyPlan: readonly InstallStage[] = ['wait-disks', 'unmount', 'sync'];
/** Nothing but disks to wait for. */
const emptyPlan: InstallPlan = {
  version: 1,
  installId,
  instance: 'web1.example.com',
  disks: [],
  image: null,
  scripts: null,
  personalization: null,
};
const failure = (code: string, message = 'it broke'): InstallEvent => ({
  type: 'result',
  atMs: 9,
  outcome: { status: 'failure', stage: 'os-scripts', code, message, hint: 'look' },
});

let dir = '';
let logs = 0;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-appliance-run-'));
});
after(() => rm(dir, { recursive: true, force: true }));

let log: InstallLog;
beforeEach(async () => {
  logs += 1;
  log = await InstallLog.create(join(dir, `log-${logs}`), createMask(['hunter2!']));
});

afterEach(() => log.close());

/** A run in which the test plays the guest: its agent, and whoever else speaks there. */
function follow(options: { signal?: AbortSignal; plan?: Partial<InstallPlan> } = {}) {
  const machine = new FakeMachine();
  const clock = new ManualClock();
  const reported: string[] = [];
  const stages: InstallStage[] = [];
  const keys: string[] = [];
  const timings: StageTiming[] = [];
  let listener: ((event: MetadEvent['event']) => void) | undefined;
  const running = followAppliance({
    plan: { ...emptyPlan, ...options.plan },
    machine,
    log,
    clock,
    bootTimeoutMs: 120_000,
    context: {
      jobId: 1,
      signal: options.signal ?? new AbortController().signal,
      report: {
        log: (message) => reported.push(message),
        waits: () => undefined,
        stageStarted: (stage) => reported.push(`started ${stage}`),
        stageFinished: (stage, _durationMs, summary) =>
          reported.push(`finished ${stage} ${summary}`),
        progress: (activity, done) => reported.push(`progress ${activity} ${done}`),
        output: (stage, line) => reported.push(`output ${stage} ${line}`),
      },
    },
    subscribe: (subscriber) => {
      listener = subscriber;
      return () => (listener = undefined);
    },
    onAgentKey: (keyHex) => keys.push(keyHex),
    onStage: (stage) => stages.push(stage),
    onTiming: (timing) => timings.push(timing),
  });
  const post = (event: InstallReport, id = installId): void =>
    listener?.({ type: 'install', installId: id, event });
  let sequence = 0;
  const sign = (event: InstallEvent, key = KEY): InstallReport => {
    sequence += 1;
    const body = JSON.stringify(event);
    return { sequence, body, mac: signEvent(key, sequence, body) };
  };
  const say = (event: InstallEvent, id = installId): void => {
    if (sequence === 0 && event !== agentStarted) post(sign(agentStarted), id);
    post(sign(event), id);
  };
  /** Success, and before it the end of every stage that the plan wants beside those given here. */
  const succeed = (...stages: InstallStage[]): void => {
    for (const stage of ['wait-disks', ...stages, 'unmount', 'sync'] as const) say(finished(stage));
    say(success);
  };
  return {
    post,
    sign,
    succeed,
    lose: (lost: number) => listener?.({ type: 'gap', lost }),
    machine,
    clock,
    running,
    keys,
    say,
    reported,
    stages,
    timings,
    isListening: () => listener !== undefined,
  };
}

/** Lets everything that is due run, without the clock. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}

async function rejected(promise: Promise<unknown>): Promise<AppError> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof AppError, `expected an AppError, not ${String(error)}`);
  return error;
}

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
      ['boot-appliance', 0, 'agent up 1.50 s after the kernel, 0.60 s after the first process'],
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
  assert.deepEqual(log.tail().slice(-2), [
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

test('a code that is none of ours is not passed on', async () => {
  const run = follow();
  run.say(failure('TOTALLY_OURS'));
  assert.equal((await rejected(run.running)).code, 'INTERNAL');
});

test('a code that would make the host look cancelled, or not there at all, is not passed on', async () => {
  for (const code of ['JOB_CANCELED', 'JOB_INTERRUPTED', 'INTERRUPTED', 'NODED_UNREACHABLE']) {
    const run = follow();
    run.say(failure(code));
    assert.equal((await rejected(run.running)).code, 'INTERNAL', code);
  }
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
  assert.deepEqual(log.tail(), ['console: Booting SMP configuration']);
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

test('what an earlier appliance still says is not taken for this one', async () => {
  const run = follow();
  const other = '99999999-2222-4333-8444-555555555555';
  const key = 'cd'.repeat(32);
  for (const event of [{ ...agentStarted, key }, success, failure('SCRIPT_FAILED')])
    run.post({ ...run.sign(event, key), sequence: 1 }, other);
  run.say(agentStarted);
  run.succeed();
  await settle();
  run.machine.end('guest-shutdown');
  await run.running;
});

test('a failure wins over the success before it and over the one behind it', async () => {
  const early = follow();
  early.say(failure('SCRIPT_FAILED'));
  early.succeed();
  assert.equal((await rejected(early.running)).code, 'SCRIPT_FAILED');
  const late = follow();
  late.succeed();
  await settle();
  late.say(failure('HOOK_FAILED'));
  late.machine.end('guest-shutdown');
  assert.equal((await rejected(late.running)).code, 'HOOK_FAILED');
});

test('a success that a script posts is not believed, signed with another key or not at all, and it is told', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const run = follow();
  run.say(agentStarted);
  for (const stage of everyPlan) run.say(finished(stage));
  const key = 'cd'.repeat(32);
  const genuine = run.sign(success);
  const forgeries: InstallReport[] = [
    success,
    failure('IMAGE_INVALID'),
    { type: 'log', atMs: 1, stage: 'sync', stream: 'agent', line: 'forged line' },
    run.sign({ ...agentStarted, key }, key),
    run.sign(success, key),
    { ...genuine, sequence: 99 },
    { ...genuine, body: `${'body' in genuine ? genuine.body : ''} ` },
    { sequence: 7, body: '{', mac: '00'.repeat(32) },
  ];
  for (const forged of forgeries) run.post(forged);
  await settle();
  run.machine.end('guest-shutdown');
  await settle();
  t.mock.timers.tick(10_000);
  assert.equal((await rejected(run.running)).code, 'APPLIANCE_NO_RESULT');
  const told = `${forgeries.length} events that the agent did not sign were not believed`;
  assert.ok(run.reported.includes(told), run.reported.join('\n'));
  assert.ok(log.tail().includes(`== ${told}`));
  assert.ok(!log.tail().includes('forged line'));
});

test('before the agent spoke nobody is believed, and what it repeats counts once', async () => {
  const run = follow();
  run.post(success);
  run.post(run.sign(success, 'cd'.repeat(32)));
  const first = { ...run.sign(agentStarted), sequence: 1 };
  const body = 'body' in first ? first.body : '';
  const genuine = { ...first, mac: signEvent(KEY, 1, body) };
  run.post(genuine);
  run.post(genuine);
  run.succeed();
  await settle();
  run.machine.end('guest-shutdown');
  await run.running;
  assert.deepEqual(run.keys, [KEY]);
  assert.ok(run.reported.includes('2 events that the agent did not sign were not believed'));
});

test('what was lost before the key came ends the run; what is lost later is told', async () => {
  const blind = follow();
  blind.lose(3);
  assert.equal((await rejected(blind.running)).code, 'APPLIANCE_NO_RESULT');
  const run = follow();
  run.say(agentStarted);
  run.lose(2);
  run.sign(finished('mount'));
  run.sign(finished('mount'));
  run.succeed();
  await settle();
  run.machine.end('guest-shutdown');
  await run.running;
  assert.ok(run.reported.includes('2 events of the agent were lost'));
});

test('success counts only when every stage of the plan has ended, in its turn', async () => {
  const plan: Partial<InstallPlan> = {
    image: { serial: 'image', fileSizeBytes: 1, grow: false },
    scripts: { script: 'create', path: 'untrusted/create', environment: {} },
    personalization: { format: 'tar.gz' },
  };
  const whole: InstallStage[] = ['image', 'os-scripts', 'mount', 'personalize'];
  const run = follow({ plan });
  run.succeed(...whole);
  await settle();
  run.machine.end('guest-shutdown');
  await run.running;
  for (const [stages, missing] of [
    [['image', 'os-scripts', 'mount'], 'personalize'],
    [['image', 'mount', 'os-scripts', 'personalize'], 'mount'],
    [['os-scripts', 'mount', 'personalize'], 'image'],
  ] as const) {
    const cut = follow({ plan });
    cut.succeed(...stages);
    const error = await rejected(cut.running);
    assert.equal(error.code, 'APPLIANCE_NO_RESULT');
    assert.match(error.message, new RegExp(`stage ${missing}$`));
  }
  const unfinished = follow();
  unfinished.say({ type: 'stage-started', atMs: 1, stage: 'install.pre' });
  unfinished.succeed();
  assert.match((await rejected(unfinished.running)).message, /stage install\.pre$/);
});

test('a secret in an output, a summary or a failure reaches neither log, nor job, nor error', async () => {
  const run = follow();
  run.say({ type: 'stage-started', atMs: 1, stage: 'os-scripts' });
  run.say({ type: 'log', atMs: 1, stage: 'os-scripts', stream: 'stdout', line: 'pw is hunter2!' });
  run.say({ type: 'stage-finished', atMs: 2, stage: 'os-scripts', summary: 'said hunter2!' });
  const outcome = {
    status: 'failure' as const,
    stage: 'os-scripts' as const,
    code: 'SCRIPT_FAILED',
    message: 'last line: hunter2!',
    hint: 'try hunter2!',
  };
  run.say({ type: 'result', atMs: 3, outcome });
  const error = await rejected(run.running);
  await log.flush();
  const told = JSON.stringify([
    run.reported,
    error.message,
    error.hint,
    error.details,
    log.tail(),
    await readFile(log.path, 'utf8'),
  ]);
  assert.ok(!told.includes('hunter2!'), told);
  assert.match(error.message, /last line: <redacted>/);
});

test('a guest that repeats itself fills neither the record nor the list of stages', async () => {
  const run = follow();
  for (let round = 0; round < 1_000; round += 1) {
    run.say(agentStarted);
    run.say({ type: 'stage-started', atMs: 1, stage: 'image' });
    run.say({ type: 'stage-finished', atMs: 2, stage: 'image', summary: 'again' });
  }
  run.succeed();
  await settle();
  run.machine.end('guest-shutdown');
  await run.running;
  assert.deepEqual(
    run.timings.map(({ stage }) => stage).filter((stage) => !everyPlan.includes(stage)),
    ['boot-appliance', 'image', 'shutdown-appliance'],
  );
  assert.deepEqual(run.stages, ['image', 'shutdown-appliance']);
});

test("a guest cannot report stages that are the host's own", async () => {
  const run = follow();
  for (const stage of [
    'create-disks',
    'fetch-image',
    'prepare-appliance',
    'shutdown-appliance',
  ] as const) {
    run.say({ type: 'stage-started', atMs: 1, stage });
    run.say({ type: 'stage-finished', atMs: 2, stage, summary: 'forged' });
  }
  run.succeed();
  await settle();
  run.machine.end('guest-shutdown');
  await run.running;
  assert.deepEqual(
    run.timings.map(({ stage }) => stage).filter((stage) => !everyPlan.includes(stage)),
    ['boot-appliance', 'shutdown-appliance'],
  );
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
