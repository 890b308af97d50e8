import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import type { JobEvent, JobRecord } from '#shared/contract/job.ts';
import type { Opcode, OpcodeInput, OpcodeName } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { JobEngine } from '../../../noded/jobs/job-engine.ts';
import type {
  Execution,
  JobContext,
  JobHandler,
  JobHandlers,
} from '../../../noded/jobs/job-handler.ts';
import type { JobRepository } from '../../../noded/jobs/job-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { parseOpcode } from '../support/opcodes.ts';

const names = [
  'INSTANCE_CREATE',
  'INSTANCE_REINSTALL',
  'INSTANCE_SET_PARAMS',
  'INSTANCE_REMOVE',
  'INSTANCE_RENAME',
  'INSTANCE_STARTUP',
  'INSTANCE_SHUTDOWN',
  'INSTANCE_REBOOT',
  'OS_SET_PARAMS',
  'CLUSTER_SET_PARAMS',
] as const satisfies readonly OpcodeName[];

/** Keeps every state that was saved, in order. */
class RecordedJobs implements JobRepository {
  readonly saved: JobRecord[] = [];
  #lastId = 0;
  beforeSave: (job: JobRecord) => Promise<void> = () => Promise.resolve();

  nextId(): Promise<number> {
    this.#lastId += 1;
    return Promise.resolve(this.#lastId);
  }

  async save(job: JobRecord): Promise<void> {
    await this.beforeSave(job);
    this.saved.push(structuredClone(job));
  }

  load(id: number): Promise<JobRecord | undefined> {
    return Promise.resolve(this.saved.findLast((job) => job.id === id));
  }

  list(): Promise<readonly JobRecord[]> {
    return Promise.resolve([...new Map(this.saved.map((job) => [job.id, job])).values()]);
  }

  statuses(id: number): readonly string[] {
    return this.saved.filter((job) => job.id === id).map((job) => job.status);
  }
}

interface Handling {
  readonly prepare?: (opcode: Opcode, signal: AbortSignal) => Promise<Execution | undefined>;
  readonly execute?: (context: JobContext) => Promise<unknown>;
  readonly repository?: RecordedJobs;
}

/** An engine in which every opcode locks its instance and does what the test says. */
function createEngine(handling: Handling) {
  const repository = handling.repository ?? new RecordedJobs();
  const handler: JobHandler<Opcode> = {
    locks: (opcode) => ('name' in opcode ? [`instance/${opcode.name}`] : []),
    prepare: async (opcode, signal) =>
      (await handling.prepare?.(opcode, signal)) ??
      handling.execute ??
      (() => Promise.resolve(null)),
  };
  // The same handler for all: what differs between opcodes is not the engine's concern.
  const handlers = Object.fromEntries(names.map((name) => [name, handler])) as JobHandlers;
  const engine = new JobEngine({
    repository,
    handlers,
    logger: silentLogger,
    clock: new ManualClock(),
  });
  return { engine, repository };
}

const shutdown = (name = 'web1'): Opcode =>
  parseOpcode({ opcode: 'INSTANCE_SHUTDOWN', name } satisfies OpcodeInput);

async function endOf(engine: JobEngine, id: number): Promise<JobRecord> {
  for await (const event of engine.watch(id, new AbortController().signal)) {
    if (event.type === 'end') return event.job;
  }
  throw new Error('the stream had no end');
}

async function eventsOf(engine: JobEngine, id: number): Promise<JobEvent[]> {
  const events: JobEvent[] = [];
  for await (const event of engine.watch(id, new AbortController().signal)) events.push(event);
  return events;
}

/** Executions that wait until they are let go, and say when they began. */
function createGate() {
  const opened = Promise.withResolvers<undefined>();
  const entered = Promise.withResolvers<undefined>();
  return {
    entered: entered.promise,
    open: () => opened.resolve(undefined),
    pass: async (): Promise<null> => {
      entered.resolve(undefined);
      await opened.promise;
      return null;
    },
  };
}

test('a job that is a dry run ends after its prerequisites, and says what it was', async () => {
  const { engine } = createEngine({ execute: () => Promise.reject(new Error('executed')) });
  const ended = await endOf(engine, await engine.submit(shutdown(), { isDryRun: true }));
  assert.deepEqual([ended.status, ended.result], ['success', null]);
  assert.equal(ended.input['isDryRun'], true);
});

test('a job goes from queued through running to success and keeps what the operation answered', async () => {
  const { engine, repository } = createEngine({
    execute: () => Promise.resolve({ name: 'web1' }),
  });
  const id = await engine.submit(shutdown());
  const ended = await endOf(engine, id);
  assert.equal(ended.status, 'success');
  assert.deepEqual(ended.result, { name: 'web1' });
  assert.deepEqual(repository.statuses(id), ['queued', 'running', 'success']);
  assert.equal(ended.summary, 'INSTANCE_SHUTDOWN(web1)');
  assert.equal(ended.instance, 'web1');
});

test('a refusal of the preparation is an error of the prerequisite phase', async () => {
  const { engine } = createEngine({
    prepare: () => {
      throw new AppError('INSTANCE_STATE', "instance 'web1' is running", { hint: 'stop it' });
    },
  });
  const { status, error } = await endOf(engine, await engine.submit(shutdown()));
  assert.equal(status, 'error');
  assert.deepEqual(error, {
    code: 'INSTANCE_STATE',
    message: "instance 'web1' is running",
    hint: 'stop it',
    phase: 'prerequisite',
    stage: null,
    logTail: [],
  });
});

test('a failure of the execution carries its stage and the last lines of the log', async () => {
  const { engine } = createEngine({
    execute: () => {
      throw new AppError('SCRIPT_FAILED', 'create ended with status 7', {
        details: { stage: 'os-scripts', logTail: ['last words'] },
      });
    },
  });
  const { error } = await endOf(engine, await engine.submit(shutdown()));
  assert.equal(error?.phase, 'execution');
  assert.equal(error?.stage, 'os-scripts');
  assert.deepEqual(error?.logTail, ['last words']);
});

test('our own bug ends the job as INTERNAL, not the daemon', async () => {
  const { engine } = createEngine({
    execute: () => {
      throw new TypeError('x is not a function');
    },
  });
  const { status, error } = await endOf(engine, await engine.submit(shutdown()));
  assert.equal(status, 'error');
  assert.equal(error?.code, 'INTERNAL');
});

test('private values, secrets, credentials and documents are in no record and no event', async () => {
  const { engine, repository } = createEngine({});
  const values = ['PRIV-1', 'SECRET-2', 'PASSWORD-3', 'USER-4'];
  const document = Buffer.from('DOCUMENT-5').toString('base64');
  const id = await engine.submit(
    parseOpcode({
      opcode: 'INSTANCE_CREATE',
      name: 'web1',
      osParametersPrivate: { a: 'PRIV-1' },
      osParametersSecret: { b: 'SECRET-2' },
      personalizationUser: 'USER-4',
      personalizationPassword: 'PASSWORD-3',
      userData: document,
      vendorData: document,
      networkConfig: document,
    }),
  );
  const told = JSON.stringify([await eventsOf(engine, id), repository.saved, await engine.list()]);
  for (const value of [...values, document]) assert.ok(!told.includes(value), value);
  assert.ok(told.includes('"b":"<redacted>"'), 'the name of the secret is kept');
});

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

test('a job that cannot be stored is refused and leaves nothing', async () => {
  const repository = new RecordedJobs();
  repository.beforeSave = () => Promise.reject(new Error('disk full'));
  const { engine } = createEngine({ repository });
  await assert.rejects(engine.submit(shutdown()), /disk full/);
  await assert.rejects(engine.get(1), { code: 'JOB_NOT_FOUND' });
  await engine.stop();
});

test('a dry run refuses what the job would refuse, executes nothing and frees its locks', async () => {
  let runs = 0;
  let refusal: AppError | undefined = new AppError('INSTANCE_STATE', 'no');
  const { engine, repository } = createEngine({
    prepare: () => {
      if (refusal !== undefined) throw refusal;
      return Promise.resolve(undefined);
    },
    execute: () => {
      runs += 1;
      return Promise.resolve();
    },
  });
  await assert.rejects(engine.dryRun(shutdown(), new AbortController().signal), {
    code: 'INSTANCE_STATE',
  });
  refusal = undefined;
  await engine.dryRun(shutdown(), new AbortController().signal);
  assert.equal(runs, 0);
  assert.deepEqual(repository.saved, []);
  const events = await eventsOf(engine, await engine.submit(shutdown()));
  assert.ok(!events.some((event) => event.type === 'status' && event.status === 'waiting'));
});

test('log lines are told as they happen and kept with the job', async () => {
  const { engine } = createEngine({
    execute: (context) => {
      context.report.log('one');
      context.report.log('two', 'warn');
      context.report.output('os-scripts', 'from the script');
      return Promise.resolve();
    },
  });
  const id = await engine.submit(shutdown());
  const events = await eventsOf(engine, id);
  assert.deepEqual(
    events.flatMap((event) => (event.type === 'log' ? [[event.message, event.level]] : [])),
    [
      ['one', 'info'],
      ['two', 'warn'],
    ],
  );
  const { log } = await engine.get(id);
  assert.deepEqual(
    log.map(({ sequence, message }) => [sequence, message]),
    [
      [1, 'one'],
      [2, 'two'],
    ],
  );
});

test('keeps the log of a talkative job within bounds', async () => {
  const { engine } = createEngine({
    execute: (context) => {
      for (let line = 0; line < 5_000; line += 1) context.report.log(String(line));
      return Promise.resolve();
    },
  });
  assert.equal((await endOf(engine, await engine.submit(shutdown()))).log.length, 2_000);
});

test('who watches an ended job is told its log and its end', async () => {
  const { engine } = createEngine({
    execute: (context) => {
      context.report.log('one');
      return Promise.resolve();
    },
  });
  const id = await engine.submit(shutdown());
  await endOf(engine, id);
  assert.deepEqual(
    (await eventsOf(engine, id)).map((event) => event.type),
    ['log', 'end'],
  );
});
