import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { JobError, JobEvent, JobRecord } from '#shared/contract/job.ts';
import { type DaemonStandIn, end, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { sampleJob } from '../lab/sample-job.ts';
import { runInProcess } from './support/run-in-process.ts';
import type { ProgramEnd } from './support/run-program.ts';

let daemon: DaemonStandIn;
before(async () => {
  daemon = await startDaemonStandIn();
});
after(() => daemon.close());
beforeEach(() => {
  daemon.jobs.length = 0;
  daemon.canceled.length = 0;
});

function failing(error: Partial<JobError>, status: JobRecord['status'] = 'error'): void {
  daemon.script = (job) => [
    end({
      ...job,
      status,
      error: {
        code: 'SCRIPT_FAILED',
        message: 'the create script ended with status 3',
        hint: 'look at the log',
        phase: 'execution',
        stage: 'os-scripts',
        details: {},
        logTail: ['+ false', 'oh\u001b[31m no'],
        ...error,
      },
    }),
  ];
}
const start = (args: readonly string[] = []) =>
  runInProcess('gnt-instance', ['startup', ...args, 'web1'], { root: daemon.root });

test('a job that fails ends with status 1, its stage, the end of its log, error and hint', async () => {
  failing({});
  const result = await start();
  assert.equal(result.status, 1);
  assert.equal(result.stdout, '');
  assert.equal(
    result.stderr,
    [
      'last lines of the log of stage os-scripts:',
      '  + false',
      '  oh no',
      'error[SCRIPT_FAILED]: the create script ended with status 3 (stage os-scripts)',
      'hint: look at the log',
      '',
    ].join('\n'),
  );
});

test('a job that refuses before it changes anything ends with status 2', async () => {
  failing({ phase: 'prerequisite', code: 'INSTANCE_STATE', stage: null, logTail: [], hint: null });
  const result = await start();
  assert.equal(result.status, 2);
  assert.equal(result.stderr, 'error[INSTANCE_STATE]: the create script ended with status 3\n');
});

test('a failure after something changed ends with status 1 even if its code is one of refusals', async () => {
  failing({ code: 'IMAGE_NOT_FOUND' });
  assert.equal((await start()).status, 1);
});

test('an unknown code of a newer daemon is printed as it is', async () => {
  failing({ code: 'FROM_THE_FUTURE' });
  const result = await start();
  assert.equal(result.status, 1);
  assert.match(result.stderr, /^error\[FROM_THE_FUTURE\]: /m);
});

test('a canceled job ends with status 1', async () => {
  daemon.script = (job) => [end({ ...job, status: 'canceled', error: null })];
  const result = await start();
  assert.equal(result.status, 1);
  assert.match(
    result.stderr,
    /^error\[JOB_CANCELED\]: job 1 \(INSTANCE_STARTUP\(web1\)\) was canceled$/m,
  );
});

test('--debug adds the trace', async () => {
  failing({});
  assert.match((await start(['--debug'])).stderr, /\n {4}at /);
});

test('a refusal of the API itself keeps its code and hint', async () => {
  daemon.refuse = () => ({
    status: 400,
    code: 'OS_PARAMETER',
    message: 'The following parameters are not supported by the OS x: y',
    hint: null,
    details: {},
  });
  const result = await start();
  daemon.refuse = () => null;
  assert.equal(result.status, 2);
  assert.match(result.stderr, /^error\[OS_PARAMETER\]: The following parameters/m);
});

test('a daemon that is not there gives status 3 and the command that starts it', async () => {
  for (const [program, args] of [
    ['gnt-instance', ['list']],
    ['gnt-node', ['doctor']],
    ['gnt-os', ['diagnose']],
    ['gnt-cluster', ['init']],
    ['gnt-job', ['watch', '1']],
    ['gnt-instance', ['connect', 'web1', '22']],
  ] as const) {
    const result = await runInProcess(program, args, { root: '/tmp/gnt-none' });
    assert.equal(result.status, 3, program);
    assert.equal(
      result.stderr,
      'error[NODED_UNREACHABLE]: the node daemon cannot be reached at /tmp/gnt-none/run/gnt/noded.sock: it is not running\n' +
        'hint: Start it with: GNT_ROOT=/tmp/gnt-none gnt-noded\n',
    );
  }
});

test('a stream that is cut is taken up again without repeating lines', async () => {
  daemon.script = (job) => [
    { type: 'stage-started', atMs: 1, stage: 'image' },
    { type: 'stage-finished', atMs: 2, stage: 'image', durationMs: 1500, summary: '5 MiB' },
    { type: 'log', atMs: 3, message: 'nearly there', level: 'info' },
    end({ ...job, status: 'success' }),
  ];
  daemon.cutAfterEvents = 2;
  const result = await start();
  assert.equal(result.status, 0, result.stderr);
  const lines = result.stderr.split('\n').map((line) => line.replace(/^\d\d:\d\d:\d\d /, ''));
  assert.deepEqual(lines, [
    'image: started',
    'image: done in 1.5 s: 5 MiB',
    'the node daemon does not respond; reconnecting to job 1',
    'nearly there',
    'instance web1 started',
    '',
  ]);
});

/** Yields one event of a job and then hangs. */
async function* endless(): AsyncGenerator<JobEvent> {
  yield { type: 'log', atMs: 1, message: 'busy', level: 'info' };
  await new Promise(() => undefined);
}

/** Runs a command whose job does not end, and sends SIGINT at each of these texts. */
async function interruptAt(texts: readonly string[]): Promise<ProgramEnd> {
  daemon.script = endless;
  const waiting = [...texts];
  return runInProcess('gnt-instance', ['startup', 'web1'], {
    root: daemon.root,
    onOutput: (text, interrupt) => {
      const [next] = waiting;
      if (next === undefined || !text.includes(next)) return;
      waiting.shift();
      interrupt();
    },
  });
}

test('an interrupt leaves the job and says how to come back, with status 130', async () => {
  const result = await interruptAt(['busy']);
  assert.equal(result.status, 130);
  assert.match(result.stderr, /job 1 continues: gnt-job watch 1/);
  assert.match(result.stderr, /^error\[INTERRUPTED\]: job 1 continues\n/m);
  assert.deepEqual(daemon.canceled, []);
});

test('a second interrupt cancels the job, with status 130', async () => {
  const result = await interruptAt(['busy', 'Ctrl-C again']);
  assert.equal(result.status, 130);
  assert.match(result.stderr, /^error\[INTERRUPTED\]: job 1 is being canceled$/m);
  assert.deepEqual(daemon.canceled, [1]);
});

test('gnt-job watch tells how a job of the past ended, with its status', async () => {
  daemon.jobs.push(sampleJob({ status: 'success', endedAtMs: Date.UTC(2026, 10, 21, 8, 1) }));
  const result = await runInProcess('gnt-job', ['watch', '1'], { root: daemon.root });
  assert.deepEqual(
    [result.status, result.stdout],
    [0, 'job 1 (INSTANCE_CREATE(web1)) succeeded in 1 min 00 s\n'],
  );
});

test('gnt-job cancel asks for the end of each job', async () => {
  const result = await runInProcess('gnt-job', ['cancel', '3', '4'], { root: daemon.root });
  assert.equal(result.status, 0);
  assert.deepEqual(daemon.canceled, [3, 4]);
});

test('a job id that is none is refused', async () => {
  const result = await runInProcess('gnt-job', ['info', 'web1'], { root: daemon.root });
  assert.equal(result.status, 2);
  assert.match(result.stderr, /^error\[USAGE\]: 'web1' is not a job id$/m);
});
