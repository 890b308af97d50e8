import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventSender } from '../../../../appliance/agent/report/event-sender.ts';
import { createEventSigner } from '../../../../appliance/agent/report/event-signer.ts';
import { createReporter } from '../../../../appliance/agent/report/reporter.ts';
import { runStages, type Stage } from '../../../../appliance/agent/report/stage.ts';
import {
  type InstallEvent,
  installEvent,
  MAX_EVENTS_BODY_BYTES,
  type SignedInstallEvent,
} from '#shared/contract/install-event.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { createMask } from '#shared/secret/mask.ts';

const event = (atMs: number): InstallEvent => ({ type: 'stage-started', atMs, stage: 'image' });
const { sign } = createEventSigner();
const open = ({ body }: SignedInstallEvent): InstallEvent => installEvent.parse(JSON.parse(body));

test('delivers events once and in order through refusals and lost connections', async () => {
  const answers: (number | Error)[] = [503, new Error('reset'), 204, 429];
  const taken: number[] = [];
  const numbers: number[] = [];
  const sender = new EventSender({
    sign: createEventSigner().sign,
    post: async (batch) => {
      const answer = answers.shift() ?? 204;
      if (answer instanceof Error) throw answer;
      if (answer >= 300) return answer;
      taken.push(...batch.map((each) => open(each).atMs));
      numbers.push(...batch.map(({ sequence }) => sequence));
      return answer;
    },
    complain: assert.fail,
  });
  for (let atMs = 0; atMs < 300; atMs += 1) sender.send(event(atMs));
  assert.equal(await sender.flush(60_000), true);
  assert.deepEqual(taken, [...Array(300).keys()]);
  assert.deepEqual(
    numbers,
    taken.map((_, index) => index + 1),
  );
});

test('a batch of long lines is within the size limit of the host', async () => {
  const sizes: number[] = [];
  let lines = 0;
  const sender = new EventSender({
    sign,
    post: async (batch) => {
      sizes.push(Buffer.byteLength(JSON.stringify(batch)));
      lines += batch.length;
      return 204;
    },
    complain: assert.fail,
  });
  const line = '\\"€'.repeat(4096 / 3);
  for (let atMs = 0; atMs < 200; atMs += 1)
    sender.send({ type: 'log', atMs, stage: 'os-scripts', stream: 'stdout', line });
  assert.equal(await sender.flush(60_000), true);
  assert.equal(lines, 200);
  assert.ok(Math.max(...sizes) <= MAX_EVENTS_BODY_BYTES, String(sizes));
  assert.ok(Math.max(...sizes) > MAX_EVENTS_BODY_BYTES / 2, 'batches are needlessly small');
});

test('lines beyond the queue for a slow host are dropped and counted in the log', async () => {
  const taken: InstallEvent[] = [];
  const host = Promise.withResolvers<number>();
  const sender = new EventSender({
    sign,
    post: async (batch) => {
      const status = await host.promise;
      taken.push(...batch.map(open));
      return status;
    },
    complain: assert.fail,
  });
  const stage = 'os-scripts';
  for (let atMs = 0; atMs < 20_300; atMs += 1)
    sender.send({ type: 'log', atMs, stage, stream: 'stdout', line: 'x' });
  sender.send({ type: 'log', atMs: 1, stage, stream: 'agent', line: 'the log is full' });
  sender.send({ type: 'stage-finished', atMs: 2, stage, summary: 'done' });
  host.resolve(204);
  assert.equal(await sender.flush(30_000), true);
  const [gap, full, end] = taken.slice(-3);
  assert.equal(gap?.type === 'log' && gap.stream, 'agent');
  const left = Number(
    /^(\d+) lines are missing here/.exec(gap?.type === 'log' ? gap.line : '')?.[1],
  );
  assert.equal(taken.length - 3 + left, 20_300);
  assert.ok(left > 0);
  assert.deepEqual(
    [full?.type === 'log' && full.line, end?.type],
    ['the log is full', 'stage-finished'],
  );
});

test('drops a batch that the host refuses, and reports it', async () => {
  const complaints: string[] = [];
  const sender = new EventSender({
    sign,
    post: async () => 400,
    complain: (text) => complaints.push(text),
  });
  sender.send(event(1));
  assert.equal(await sender.flush(1000), true);
  assert.match(complaints[0] ?? '', /400/);
  assert.equal(sender.refusedEvents, 1);
});

test('reports a result that is not acknowledged before the timeout', async () => {
  const sender = new EventSender({
    sign,
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

test('stops at the first failing stage, runs the cleanup stages, and keeps the first failure', async () => {
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
