import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { StageFailure } from '../../../noded/jobs/stage-failure.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { modifyOpcode, parseOpcode } from '../support/opcodes.ts';
import {
  RecordedJobs,
  createEngine,
  createGate,
  shutdown,
  endOf,
  eventsOf,
} from './job-engine-lab.ts';

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
      throw new AppError('INSTANCE_STATE', "instance 'web1' is running", { hint: 'Stop it' });
    },
  });
  const { status, error } = await endOf(engine, await engine.submit(shutdown()));
  assert.equal(status, 'error');
  assert.deepEqual(error, {
    code: 'INSTANCE_STATE',
    message: "instance 'web1' is running",
    hint: 'Stop it',
    details: {},
    phase: 'prerequisite',
    stage: null,
    logTail: [],
  });
});

test('a failure of the execution carries its stage and the last lines of the log', async () => {
  const { engine } = createEngine({
    execute: () => {
      throw new StageFailure('SCRIPT_FAILED', 'create ended with status 7', {
        stage: 'os-scripts',
        logTail: ['last words'],
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

const SECRET = 'k3y of the\0guest';

/** Throws Node's error for an environment with a NUL byte: its message quotes the value. */
function startWith(value: string): never {
  spawn('/bin/true', [], { env: { OSP_KEY: value } });
  assert.fail('it was started');
}

test('a secret that an unexpected error quotes is in no record, event, answer or log', async () => {
  const logged: string[] = [];
  const logger = {
    ...silentLogger,
    error: (event: string, fields: unknown) => logged.push(JSON.stringify({ event, fields })),
  };
  const opcode = modifyOpcode({ osParametersSecret: { key: SECRET } });
  for (const phase of ['prepare', 'execute'] as const) {
    const { engine, repository } = createEngine({
      [phase]: () => startWith(SECRET),
      logger,
    });
    const id = await engine.submit(opcode);
    const ended = await endOf(engine, id);
    assert.equal(ended.error?.message, 'unexpected failure (TypeError ERR_INVALID_ARG_VALUE)');
    const told = JSON.stringify([repository.saved, await eventsOf(engine, id), logged]);
    assert.doesNotMatch(told, /k3y|guest/);
  }
  assert.equal(logged.length, 2);
  assert.match(logged[0] ?? '', /job.failed-unexpectedly.*"job":1.*normalizeSpawnArguments/);
  const { engine } = createEngine({ prepare: () => startWith(SECRET), logger });
  await assert.rejects(engine.dryRun(opcode, new AbortController().signal), {
    code: 'INTERNAL',
    message: 'unexpected failure (TypeError ERR_INVALID_ARG_VALUE)',
  });
});

test('a stored private value that an unexpected error quotes is not in the log', async () => {
  const logged: string[] = [];
  const { engine } = createEngine({
    execute: () => Promise.reject(new Error('cannot use k3y of the gu...')),
    listHiddenValues: () => Promise.resolve(['k3y of the guest']),
    logger: {
      ...silentLogger,
      error: (_event, fields) => logged.push(JSON.stringify(fields)),
    },
  });
  await endOf(engine, await engine.submit(shutdown()));
  assert.match(logged.join(), /"message":"<redacted/);
});

test('the log withholds the message of a bug when hidden values cannot be listed', async () => {
  const logged: string[] = [];
  const { engine } = createEngine({
    execute: () => Promise.reject(new Error('cannot use k3y of the guest')),
    listHiddenValues: () => Promise.reject(new Error('the store is away')),
    logger: {
      ...silentLogger,
      error: (_event, fields) => logged.push(JSON.stringify(fields)),
    },
  });
  await endOf(engine, await engine.submit(shutdown()));
  assert.match(logged.join(), /"message":"<redacted/);
});

test('what an operation reports and refuses shows no secret of its opcode', async () => {
  const opcode = modifyOpcode({ osParametersSecret: { key: 'k3y-of-the-guest' } });
  const say = 'it has k3y-of-the-guest';
  const { engine } = createEngine({
    execute: ({ report }) => {
      report.log(say);
      report.stageStarted('os-scripts');
      report.progress(say, 1, 2);
      report.output('os-scripts', say);
      report.stageFinished('os-scripts', 1, say);
      throw new StageFailure('SCRIPT_FAILED', say, {
        ...{ stage: 'os-scripts' as const, logTail: [say], hint: say, details: { say } },
      });
    },
  });
  const events = JSON.stringify(await eventsOf(engine, await engine.submit(opcode)));
  assert.doesNotMatch(events, /k3y/);
  assert.equal(events.match(/it has <redacted>/g)?.length, 9);
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

test('who watches a short job when it is over is told what others were told', async () => {
  const { engine } = createEngine({
    execute: (context) => {
      context.report.stageStarted('create-disks');
      context.report.progress('copying', 32, 32);
      return Promise.resolve();
    },
  });
  const id = await engine.submit(shutdown());
  const live = await eventsOf(engine, id);
  assert.ok(live.some(({ type }) => type === 'progress'));
  assert.deepEqual(await eventsOf(engine, id), live);
  // The 64 later jobs displace its stream.
  for (let job = 0; job < 64; job += 1) await endOf(engine, await engine.submit(shutdown()));
  assert.deepEqual(
    (await eventsOf(engine, id)).map(({ type }) => type),
    ['end'],
  );
});

test('who watches a long job when it is over is told its log, warnings as such, and its end', async () => {
  const { engine } = createEngine({
    execute: (context) => {
      for (let line = 0; line < 100; line += 1) context.report.output('os-scripts', `${line}`);
      context.report.log('one');
      context.report.log('two', 'warn');
      return Promise.resolve();
    },
  });
  const id = await engine.submit(shutdown());
  await endOf(engine, id);
  assert.deepEqual(
    (await eventsOf(engine, id)).map((event) => (event.type === 'log' ? event.level : event.type)),
    ['info', 'warn', 'end'],
  );
});

test("a job's error carries the details of what was thrown, and not when they are beyond all bounds", async () => {
  const thrown = (details: AppError['details']) =>
    createEngine({
      prepare: () => {
        throw new AppError('SECRETS_NEEDED', 'x', { details });
      },
    });
  const { engine } = thrown({ osParameters: ['a'] });
  const { error } = await endOf(engine, await engine.submit(shutdown()));
  assert.deepEqual(error?.details, { osParameters: ['a'] });
  const { engine: flooded } = thrown({ text: 'x'.repeat(100_000) });
  const ended = await endOf(flooded, await flooded.submit(shutdown()));
  assert.deepEqual([ended.error?.code, ended.error?.details], ['SECRETS_NEEDED', {}]);
});

test('a user of the remote API has a bounded number of jobs that have not ended, all at once too', async () => {
  const gate = createGate();
  const { engine } = createEngine({ execute: gate.pass });
  const alice = { submitter: { user: 'alice', scope: null } };
  const asked = Array.from({ length: 60 }, () => engine.submit(shutdown(), alice));
  const refusals = (await Promise.allSettled(asked)).filter(({ status }) => status === 'rejected');
  assert.equal(refusals.length, 10);
  await assert.rejects(engine.submit(shutdown(), alice), { code: 'TOO_MANY_JOBS' });
  await engine.submit(shutdown(), { submitter: { user: 'bob', scope: null } });
  await engine.submit(shutdown());
  gate.open();
  await engine.stop();
});
