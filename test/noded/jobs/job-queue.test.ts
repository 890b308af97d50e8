import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import {
  RecordedJobs,
  createEngine,
  shutdown,
  endOf,
  eventsOf,
  createGate,
} from './job-engine-lab.ts';

test('jobs for one instance follow each other and say whom they wait for', async () => {
  const gate = createGate();
  const order: number[] = [];
  const { engine } = createEngine({
    execute: async (context) => {
      order.push(context.jobId);
      return gate.pass();
    },
  });
  const first = await engine.submit(shutdown('web1'));
  await gate.entered;
  const second = await engine.submit(shutdown('web1'));
  await turn();
  const waiting = await engine.get(second);
  assert.equal(waiting.status, 'waiting');
  assert.deepEqual(waiting.waitsFor, [first]);
  gate.open();
  await endOf(engine, second);
  assert.deepEqual(order, [first, second]);
  assert.deepEqual((await engine.get(second)).waitsFor, []);
});

test('jobs for two instances run side by side', async () => {
  const one = createGate();
  const two = createGate();
  const gates = [one, two];
  const { engine } = createEngine({ execute: () => gates.shift()?.pass() ?? Promise.resolve() });
  const first = await engine.submit(shutdown('web1'));
  const second = await engine.submit(shutdown('web2'));
  await Promise.all([one.entered, two.entered]);
  two.open();
  assert.equal((await endOf(engine, second)).status, 'success');
  assert.equal((await engine.get(first)).status, 'running');
  one.open();
  await endOf(engine, first);
});

test('who hears of the end of a job can have its locks at once', async () => {
  const { engine } = createEngine({});
  const id = await engine.submit(shutdown());
  for await (const event of engine.watch(id, new AbortController().signal)) {
    if (event.type !== 'end') continue;
    const next = await engine.submit(shutdown());
    const events = await eventsOf(engine, next);
    assert.ok(!events.some((one) => one.type === 'status' && one.status === 'waiting'));
  }
});

test('a job that waits for room says for what and whom, and runs again without it', async () => {
  const gate = createGate();
  const { engine, repository } = createEngine({
    execute: async (context) => {
      context.report.waits('room on the node', [7]);
      await gate.pass();
      context.report.waits(null, []);
      return null;
    },
  });
  const id = await engine.submit(shutdown());
  await gate.entered;
  const { status, waitsBecause, waitsFor } = await engine.get(id);
  assert.deepEqual([status, waitsBecause, waitsFor], ['waiting', 'room on the node', [7]]);
  gate.open();
  assert.equal((await endOf(engine, id)).waitsBecause, null);
  assert.deepEqual(repository.statuses(id), ['queued', 'running', 'waiting', 'running', 'success']);
});

test('a dry run whose client is gone waits for no lock any more', async () => {
  const gate = createGate();
  const { engine } = createEngine({ execute: () => gate.pass() });
  const first = await engine.submit(shutdown());
  await gate.entered;
  const client = new AbortController();
  const dryRun = engine.dryRun(shutdown(), client.signal);
  client.abort(new Error('the client is gone'));
  await assert.rejects(dryRun, /the client is gone/);
  gate.open();
  await endOf(engine, first);
});

test('cancelling a job that waits for a lock ends it without running it', async () => {
  const gate = createGate();
  let runs = 0;
  const { engine } = createEngine({
    execute: () => {
      runs += 1;
      return gate.pass();
    },
  });
  const first = await engine.submit(shutdown());
  await gate.entered;
  const second = await engine.submit(shutdown());
  await turn();
  await engine.cancel(second);
  const ended = await endOf(engine, second);
  assert.equal(ended.status, 'canceled');
  assert.equal(ended.error?.code, 'JOB_CANCELED');
  gate.open();
  await endOf(engine, first);
  assert.equal(runs, 1);
});

test('cancelling a job during its preparation keeps it from executing', async () => {
  const gate = createGate();
  let hasExecuted = false;
  const { engine } = createEngine({
    prepare: async () => {
      await gate.pass();
      return async () => {
        hasExecuted = true;
      };
    },
  });
  const id = await engine.submit(shutdown());
  await gate.entered;
  await engine.cancel(id);
  gate.open();
  assert.equal((await endOf(engine, id)).status, 'canceled');
  assert.equal(hasExecuted, false);
});

test('a cancelled execution that ends with the reason of its signal is canceled', async () => {
  const { engine, repository } = createEngine({
    execute: (context) =>
      new Promise((_, reject) => {
        context.signal.addEventListener('abort', () => reject(context.signal.reason as Error));
      }),
  });
  const id = await engine.submit(shutdown());
  await turn();
  await engine.cancel(id);
  assert.equal((await endOf(engine, id)).status, 'canceled');
  assert.deepEqual(repository.statuses(id), ['queued', 'running', 'canceling', 'canceled']);
});

test("a cancelled execution that ends with Node's AbortError is canceled, not a bug", async () => {
  const { setTimeout: sleep } = await import('node:timers/promises');
  const { engine } = createEngine({
    execute: (context) => sleep(60_000, undefined, { signal: context.signal }),
  });
  const id = await engine.submit(shutdown());
  await turn();
  await engine.cancel(id);
  const { status, error } = await endOf(engine, id);
  assert.equal(status, 'canceled');
  assert.equal(error?.code, 'JOB_CANCELED');
});

test('a job that is done while its end is being saved cannot be cancelled any more', async () => {
  const repository = new RecordedJobs();
  const saving = createGate();
  repository.beforeSave = async (job) => {
    if (job.endedAtMs !== null) await saving.pass();
  };
  const { engine } = createEngine({ repository });
  const id = await engine.submit(shutdown());
  await saving.entered;
  await assert.rejects(engine.cancel(id), { code: 'CONFLICT' });
  saving.open();
  assert.equal((await endOf(engine, id)).status, 'success');
  assert.equal((await repository.load(id))?.status, 'success');
});

test('cancelling an unknown or an ended job is refused', async () => {
  const { engine } = createEngine({});
  await assert.rejects(engine.cancel(99), { code: 'JOB_NOT_FOUND' });
  const id = await engine.submit(shutdown());
  await endOf(engine, id);
  await assert.rejects(engine.cancel(id), { code: 'CONFLICT' });
});

test('stopping interrupts what runs and what waits, waits for both, and takes nothing new', async () => {
  const { engine, repository } = createEngine({
    execute: (context) =>
      new Promise((_, reject) => {
        context.signal.addEventListener('abort', () => reject(context.signal.reason as Error));
      }),
  });
  const running = await engine.submit(shutdown());
  const waiting = await engine.submit(shutdown());
  await turn();
  await engine.stop();
  for (const id of [running, waiting]) {
    const job = await repository.load(id);
    assert.equal(job?.status, 'error');
    assert.equal(job.error?.code, 'JOB_INTERRUPTED');
  }
  await assert.rejects(engine.submit(shutdown()), { code: 'CONFLICT' });
});

test('stopping waits for a job that is just being submitted', async () => {
  const repository = new RecordedJobs();
  const saving = createGate();
  repository.beforeSave = async (job) => {
    if (job.status === 'queued') await saving.pass();
  };
  const { engine } = createEngine({ repository });
  const submitting = engine.submit(shutdown());
  await saving.entered;
  const stopping = engine.stop();
  saving.open();
  await stopping;
  assert.equal((await repository.load(await submitting))?.error?.code, 'JOB_INTERRUPTED');
});
