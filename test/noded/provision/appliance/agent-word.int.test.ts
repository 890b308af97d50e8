import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { InstallReport } from '#shared/contract/install-event.ts';
import type { InstallPlan } from '#shared/contract/plan.ts';
import type { InstallStage } from '#shared/contract/primitives.ts';
import { signEvent } from '#shared/secret/event-signature.ts';
import {
  agentStarted,
  everyPlan,
  failure,
  finished,
  KEY,
  playAppliances,
  rejected,
  settle,
  success,
} from '../../support/played-appliance.ts';

const appliances = playAppliances();
const { follow } = appliances;

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
  const told = `ignored ${forgeries.length} events without a valid signature of the agent`;
  assert.ok(run.reported.includes(told), run.reported.join('\n'));
  assert.ok(appliances.log.tail().includes(`== ${told}`));
  assert.ok(!appliances.log.tail().includes('forged line'));
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
  assert.ok(run.reported.includes('ignored 2 events without a valid signature of the agent'));
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
  await appliances.log.flush();
  const told = JSON.stringify([
    run.reported,
    error.message,
    error.hint,
    error.details,
    appliances.log.tail(),
    await readFile(appliances.log.path, 'utf8'),
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
