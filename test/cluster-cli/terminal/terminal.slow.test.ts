/* eslint-disable no-control-regex -- terminals are what is tested here */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { NeededSecrets } from '#shared/contract/error-details.ts';
import type { JobEvent } from '#shared/contract/job.ts';
import { type DaemonStandIn, end, startDaemonStandIn } from '../support/daemon-stand-in.ts';
import { sampleInstance } from '../support/samples.ts';
import { type ProgramOptions, runProgram } from '../support/run-program.ts';

let daemon: DaemonStandIn;
before(async () => {
  daemon = await startDaemonStandIn();
});
after(() => daemon.close());
beforeEach(() => {
  daemon.jobs.length = 0;
  daemon.submitted.length = 0;
  daemon.refuse = () => null;
});

const MIB = 1024 * 1024;
const install: readonly JobEvent[] = [
  { type: 'stage-started', atMs: 1000, stage: 'fetch-image' },
  { type: 'progress', atMs: 1000, activity: 'fetch-image', doneBytes: 0, totalBytes: 900 * MIB },
  {
    type: 'progress',
    atMs: 2000,
    activity: 'fetch-image',
    doneBytes: 90 * MIB,
    totalBytes: 900 * MIB,
  },
  {
    type: 'output',
    atMs: 2000,
    stage: 'fetch-image',
    line: 'a line of output that is longer than any narrow terminal could ever show',
  },
  {
    type: 'stage-finished',
    atMs: 3000,
    stage: 'fetch-image',
    durationMs: 2000,
    summary: '900 MiB',
  },
  { type: 'log', atMs: 3000, message: 'no KVM here', level: 'warn' },
];

const start = (options: Partial<ProgramOptions>, args: readonly string[] = []) =>
  runProgram('gnt-instance', ['startup', ...args, 'web1'], { root: daemon.root, ...options });

function runInstall(): void {
  daemon.script = async function* (job) {
    for (const event of install) {
      yield event;
      // Long enough for a frame to be drawn.
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    yield end({ ...job, status: 'success' });
  };
}

/** Returns the final screen of a terminal of this width, for lines that are rewritten in place. */
function play(text: string, columns: number): readonly string[] {
  const lines: string[][] = [[]];
  let [row, column] = [0, 0];
  for (const [token] of text.matchAll(/\u001b\[[?\d;]*[A-Za-z]|[^]/g)) {
    const count = Number(/\d+/.exec(token)?.[0] ?? 1);
    const line = (lines[row] ??= []);
    if (token === '\n') row += 1;
    else if (token === '\r') column = 0;
    else if (/^\u001b\[\d*A$/.test(token)) row = Math.max(0, row - count);
    else if (/^\u001b\[\d*B$/.test(token)) row += count;
    else if (/^\u001b\[\d*G$/.test(token)) column = count - 1;
    else if (token === '\u001b[2K') line.length = 0;
    else if (/^\u001b\[0?K$/.test(token)) line.length = column;
    else if (/^\u001b\[0?J$/.test(token)) [lines.length, line.length] = [row + 1, column];
    else if (!token.startsWith('\u001b')) {
      assert.equal(column < columns, true, `a line wraps at ${columns}: ${line.join('')}`);
      line[column] = token;
      column += 1;
    }
  }
  return lines.map((line) =>
    Array.from(line, (each) => each ?? ' ')
      .join('')
      .trimEnd(),
  );
}

for (const columns of [80, 40, 20]) {
  test(`at ${columns} columns no line wraps, and what is over stays on the screen`, async () => {
    runInstall();
    const { status, stdout } = await start({ columns });
    assert.equal(status, 0);
    // Text after the job's progress may wrap.
    const drawn = stdout.slice(0, stdout.indexOf('instance web1'));
    const screen = play(drawn, columns).join('\n');
    assert.match(screen, /^✔ fetch-image/m);
    assert.equal(screen.includes('⠋'), false, screen);
  });
}

test('on a terminal the bar, the rate and the time left are drawn in colour', async () => {
  runInstall();
  const { stdout } = await start({ columns: 80 });
  assert.match(stdout, /\u001b\[36m█+\u001b\[39m░+ {2}10 % 90 MiB\/900 MiB 90 MiB\/s ETA 0:09/);
  assert.match(stdout, /\u001b\[32m✔/);
});

test('NO_COLOR takes the colours, a locale without UTF-8 takes the signs', async () => {
  runInstall();
  const { stdout } = await start({ columns: 80, env: { NO_COLOR: '1', LANG: 'C' } });
  assert.equal(/\u001b\[\d*m/.test(stdout), false);
  assert.match(stdout, /\+ fetch-image +2\.0 s {2}900 MiB/);
  assert.match(stdout, / #\.+ {2}10 % 90 MiB\/900 MiB 90 MiB\/s ETA 0:09/);
});

test('a dumb terminal and a pipe get plain lines without control characters', async () => {
  runInstall();
  const dumb = await start({ columns: 80, env: { TERM: 'dumb' } });
  const pipe = await start({});
  for (const text of [dumb.stdout.replaceAll('\r', ''), pipe.stderr]) {
    assert.match(text, /^[\n -~]*$/);
    assert.match(text, /^\d\d:\d\d:\d\d fetch-image: started$/m);
    assert.match(text, /^\d\d:\d\d:\d\d fetch-image: done in 2\.0 s: 900 MiB$/m);
    assert.match(text, /^\d\d:\d\d:\d\d warning: no KVM here$/m);
  }
  assert.equal(pipe.stdout, '');
});

/** Details of SECRETS_NEEDED, as from the daemon. */
function needed(missing: Partial<NeededSecrets>): NeededSecrets {
  return { osParameters: [], packageUser: false, packagePassword: false, ...missing };
}

test('secrets that are needed are asked for without showing them', async () => {
  daemon.script = (job) => [end({ ...job, status: 'success' })];
  daemon.refuse = (opcode) =>
    'osParametersSecret' in opcode && !('password' in opcode.osParametersSecret)
      ? {
          status: 400,
          code: 'SECRETS_NEEDED',
          message: 'secrets are needed again: password',
          hint: null,
          details: needed({ osParameters: ['password'] }),
        }
      : null;
  let isTyped = false;
  const { status, stdout } = await start({
    columns: 80,
    holdInput: true,
    onOutput: (text, child) => {
      if (!text.includes('password (secret): ') || isTyped) return;
      isTyped = true;
      child.stdin?.write('wrong\u0015hunter22x\u007f\r');
    },
  });
  assert.equal(status, 0, stdout);
  assert.equal(stdout.includes('hunter'), false);
  const [opcode] = daemon.submitted;
  assert.deepEqual(opcode && 'osParametersSecret' in opcode && opcode.osParametersSecret, {
    password: 'hunter22',
  });
});

test('secrets that a job misses are asked for, and the job is submitted again', async () => {
  daemon.refuse = (_opcode, isDryRun) =>
    isDryRun
      ? { status: 500, code: 'INTERNAL', message: 'asked twice', hint: null, details: {} }
      : null;
  daemon.script = (job, opcode) => [
    end(
      'osParametersSecret' in opcode && 'password' in opcode.osParametersSecret
        ? { ...job, status: 'success' }
        : {
            ...job,
            status: 'error',
            error: {
              code: 'SECRETS_NEEDED',
              message: 'x',
              hint: null,
              details: needed({ osParameters: ['password'] }),
              phase: 'prerequisite',
              stage: null,
              logTail: [],
            },
          },
    ),
  ];
  let isTyped = false;
  const { status } = await start({
    columns: 80,
    holdInput: true,
    onOutput: (text, child) => {
      if (!text.includes('password (secret): ') || isTyped) return;
      isTyped = true;
      child.stdin?.write('hunter22\r');
    },
  });
  assert.equal(status, 0);
  assert.equal(daemon.submitted.length, 2);
});

test('both halves of a login at the package server are asked for, the password without showing it', async () => {
  daemon.script = (job) => [end({ ...job, status: 'success' })];
  daemon.refuse = (opcode) =>
    'personalizationUser' in opcode && 'personalizationPassword' in opcode
      ? null
      : {
          status: 400,
          code: 'SECRETS_NEEDED',
          message: 'x',
          hint: null,
          details: needed({ packageUser: true, packagePassword: true }),
        };
  const answers = ['joe\r', 'hunter22\r'];
  const asked = ['user of the package: ', 'password of the package: '];
  const { status, stdout } = await runProgram('gnt-instance', ['reinstall', '--force', 'web1'], {
    root: daemon.root,
    columns: 80,
    holdInput: true,
    onOutput: (text, child) => {
      if (!text.includes(asked[0] ?? '?')) return;
      asked.shift();
      child.stdin?.write(answers.shift() ?? '');
    },
  });
  assert.equal(status, 0, stdout);
  assert.equal(stdout.includes('hunter'), false);
  const [opcode] = daemon.submitted;
  assert.ok(opcode && 'personalizationUser' in opcode);
  assert.deepEqual(
    [opcode.personalizationUser, opcode.personalizationPassword],
    ['joe', 'hunter22'],
  );
});

test('Ctrl-C at the question ends with status 130 and submits nothing', async () => {
  daemon.refuse = () => ({
    status: 400,
    code: 'SECRETS_NEEDED',
    message: 'x',
    hint: null,
    details: needed({ osParameters: ['password'] }),
  });
  let isTyped = false;
  const { status, stdout } = await start({
    columns: 80,
    holdInput: true,
    onOutput: (text, child) => {
      if (!text.includes('password (secret): ') || isTyped) return;
      isTyped = true;
      child.stdin?.write('\u0003');
    },
  });
  assert.equal(status, 130);
  assert.match(stdout, /error\[INTERRUPTED\]/);
  assert.equal(daemon.submitted.length, 0);
});

test('without a terminal missing secrets are an error with the hint of the daemon', async () => {
  daemon.refuse = () => ({
    status: 400,
    code: 'SECRETS_NEEDED',
    message: 'secrets are needed: password',
    hint: 'Give them',
    details: needed({ osParameters: ['password'] }),
  });
  const result = await start({});
  assert.equal(result.status, 2);
  assert.equal(
    result.stderr,
    'error[SECRETS_NEEDED]: secrets are needed: password\nhint: Give them\n',
  );
});

test('remove asks on a terminal, and no is no', async () => {
  daemon.script = (job) => [end({ ...job, status: 'success' })];
  daemon.instances.push(sampleInstance({ name: 'web1' }));
  const answer = (text: string) => {
    let isTyped = false;
    return runProgram('gnt-instance', ['remove', 'web1'], {
      root: daemon.root,
      columns: 80,
      holdInput: true,
      onOutput: (shown, child) => {
        if (!shown.includes('[y/N]') || isTyped) return;
        isTyped = true;
        child.stdin?.write(text);
      },
    });
  };
  assert.equal((await answer('n\r')).status, 1);
  assert.equal((await answer('\x03')).status, 130);
  assert.equal((await answer('\x04')).status, 130);
  assert.equal(daemon.submitted.length, 0);
  assert.equal((await answer('y\r')).status, 0);
  assert.equal(daemon.submitted.length, 1);
});

test('off a terminal nothing is removed unless it is forced', async () => {
  daemon.script = (job) => [end({ ...job, status: 'success' })];
  daemon.instances.push(sampleInstance({ name: 'web1' }));
  const { status, stderr } = await runProgram('gnt-instance', ['remove', 'web1'], {
    root: daemon.root,
  });
  assert.deepEqual([status, daemon.submitted.length], [2, 0]);
  assert.match(stderr, /This removes web1, its disks and all data on them.*\n.*--force/);
  const forced = await runProgram('gnt-instance', ['remove', '--force', 'web1'], {
    root: daemon.root,
  });
  assert.deepEqual([forced.status, daemon.submitted.length], [0, 1]);
});

test('a reader that goes away is no failure', async () => {
  const { execFile } = await import('node:child_process');
  for (let at = 0; at < 3000; at += 1) daemon.instances.push(sampleInstance({ name: `i${at}` }));
  const { join } = await import('node:path');
  const program = join(import.meta.dirname, '../../../node_modules/.bin/gnt-instance');
  const { stdout, stderr } = await new Promise<{ stdout: string; stderr: string }>((resolve) => {
    execFile(
      'bash',
      ['--norc', '-c', `${program} list --json | head -n 1; echo "\${PIPESTATUS[0]}"`],
      { env: { PATH: process.env['PATH'], GNT_ROOT: daemon.root } },
      (_error, out, err) => resolve({ stdout: out, stderr: err }),
    );
  });
  assert.deepEqual([stdout, stderr], ['[\n0\n', '']);
});
