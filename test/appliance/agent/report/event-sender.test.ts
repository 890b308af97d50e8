import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventSender } from '../../../../appliance/agent/report/event-sender.ts';
import { createReporter } from '../../../../appliance/agent/report/reporter.ts';
import { runStages, type Stage } from '../../../../appliance/agent/report/stage.ts';
import { type InstallEvent, installEvent } from '#shared/contract/install-event.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { createMask } from '#shared/secret/mask.ts';

const event = (atMs: number): InstallEvent => ({ type: 'stage-started', atMs, stage: 'image' });

test('delivers events once and in order through refusals and lost connections', async () => {
  const answers: (number | Error)[] = [503, new Error('reset'), 204, 429];
  const taken: number[] = [];
  const sender = new EventSender({
    post: async (batch) => {
      const answer = answers.shift() ?? 204;
      if (answer instanceof Error) throw answer;
      if (answer < 300) taken.push(...batch.map((each) => each.atMs));
      return answer;
    },
    complain: assert.fail,
  });
  for (let atMs = 0; atMs < 300; atMs += 1) sender.send(event(atMs));
  assert.equal(await sender.flush(10_000), true);
  assert.deepEqual(taken, [...Array(300).keys()]);
});

test('gives up a batch that the host calls wrong, and says so', async () => {
  const complaints: string[] = [];
  const sender = new EventSender({
    post: async () => 400,
    complain: (text) => complaints.push(text),
  });
  sender.send(event(1));
  assert.equal(await sender.flush(1000), true);
  assert.match(complaints[0] ?? '', /400/);
});

test('tells when the result was not acknowledged in time', async () => {
  const sender = new EventSender({
    post: () => new Promise(() => undefined),
    complain: assert.fail,
  });
  sender.send(event(1));
  assert.equal(await sender.flush(20), false);
});

function collect(mask = (text: string): string => text): {
  events: InstallEvent[];
  printed: string[];
  reporter: ReturnType<typeof createReporter>;
  clock: { ms: number };
} {
  const events: InstallEvent[] = [];
  const printed: string[] = [];
  const clock = { ms: 0 };
  const reporter = createReporter({
    send: (each) => events.push(installEvent.parse(each)),
    print: (line) => printed.push(line),
    uptimeMs: () => clock.ms,
    mask,
  });
  return { events, printed, reporter, clock };
}

test('masks a secret in logs, summaries and failures, for the host and for the console', () => {
  const { events, printed, reporter } = collect(createMask(['hunter22']));
  reporter.reporterFor('os-scripts').log('password hunter22', 'stdout');
  reporter.finished('os-scripts', 'used hunter22');
  reporter.result({
    stage: 'os-scripts',
    error: new AppError('SCRIPT_FAILED', 'no hunter22', { hint: 'not hunter22' }),
  });
  reporter.result({ stage: 'sync', error: new Error('bug with hunter22') });
  assert.equal(events.length, 4);
  assert.ok(!JSON.stringify([events, printed]).includes('hunter22'));
});

test('sends at most one progress event a second', () => {
  const { events, reporter, clock } = collect();
  const stage = reporter.reporterFor('image');
  for (clock.ms = 0; clock.ms < 3000; clock.ms += 100) stage.progress(clock.ms, 3000);
  assert.deepEqual(
    events.map((each) => each.atMs),
    [0, 1000, 2000],
  );
});

test('stops at the first stage that fails, cleans up all the same, and keeps the first failure', async () => {
  const ran: string[] = [];
  const stage = (name: Stage['name'], fails = false): Stage => ({
    name,
    run: async () => {
      ran.push(name);
      if (fails) throw new Error(name);
      return '';
    },
  });
  const { reporter } = collect();
  const failure = await runStages(
    [stage('wait-disks'), stage('image', true), stage('os-scripts')],
    [stage('unmount', true), stage('sync')],
    reporter,
  );
  assert.equal(failure?.stage, 'image');
  assert.deepEqual(ran, ['wait-disks', 'image', 'unmount', 'sync']);
});
