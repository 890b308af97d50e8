import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { MAX_TABLE_BYTES, MAX_VALUE_BYTES } from '#shared/contract/bounded-texts.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { createMask } from '#shared/secret/mask.ts';
import { createTestChildren } from '../../support/test-children.ts';
import type { ChildSupervisor } from '../../../../noded/host/child-supervisor.ts';
import { InstallLog } from '../../../../noded/host/install-log.ts';
import {
  type HostScriptOptions,
  runHostScript,
  ScriptFailed,
} from '../../../../noded/provision/os/run-host-script.ts';

let directory = '';
let count = 0;
let children: ChildSupervisor;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-script-'));
  children = createTestChildren(join(directory, 'children'));
});
after(() => rm(directory, { recursive: true }));

async function runScript(
  body: string,
  options: Partial<HostScriptOptions> = {},
): Promise<{ stdout: string[]; stderr: string[] }> {
  const path = join(directory, `script${++count}`);
  await writeFile(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  const lines = { stdout: [] as string[], stderr: [] as string[] };
  await runHostScript({
    path,
    environment: { PATH: '/sbin:/bin:/usr/sbin:/usr/bin' },
    cwd: directory,
    onLine: (line, stream) => lines[stream].push(line),
    signal: new AbortController().signal,
    launch: children.launch,
    ...options,
  });
  return lines;
}

test('a script gets its environment, its directory and nothing of ours', async () => {
  process.env['GNT_TEST_LEAK'] = 'leak';
  const { stdout, stderr } = await runScript('cat /proc/self/environ | tr "\\0" "\\n"; pwd >&2', {
    environment: { PATH: '/usr/bin:/bin', OSP_KEY: 'v=1', INSTANCE_NAME: 'x' },
    extraPath: ['/opt/gnt/bin'],
  });
  delete process.env['GNT_TEST_LEAK'];
  assert.deepEqual(stdout.filter((line) => !/^(PWD|_|OLDPWD)=/.test(line)).sort(), [
    'INSTANCE_NAME=x',
    'OSP_KEY=v=1',
    'PATH=/opt/gnt/bin:/usr/bin:/bin',
  ]);
  assert.equal(stderr[0], directory);
});

test('a parameter whose name has a dot gets to a script, and nothing of the shell that starts it', async () => {
  const { stdout } = await runScript('tr "\\0" "\\n" <"/proc/$$/environ"', {
    environment: { PATH: '/usr/bin:/bin', 'OSP_A.B': 'with a dot', BASH_ENV: '/nowhere' },
  });
  assert.deepEqual(stdout.toSorted(), [
    ...['BASH_ENV=/nowhere', 'OSP_A.B=with a dot', 'PATH=/usr/bin:/bin'],
  ]);
});

test('a script can be started with as many parameters as there may be', async () => {
  const count = MAX_TABLE_BYTES / MAX_VALUE_BYTES;
  const value = '€'.repeat(Math.floor((MAX_VALUE_BYTES - 32) / 3));
  const parameters = Array.from({ length: count }, (_, at) => [`OSP_P${at}`, value] as const);
  const { stdout } = await runScript('wc -c <"/proc/$$/environ"', {
    environment: { PATH: '/usr/bin:/bin', ...Object.fromEntries(parameters) },
  });
  assert.ok(Number(stdout[0]) > MAX_TABLE_BYTES - 32 * count, String(stdout[0]));
});

test('a program that env(1) would take for a variable is refused, not its argument run', async () => {
  await assert.rejects(
    children.launch('/a=b', ['/bin/true'], { stdio: ['ignore', 'pipe', 'pipe'] }),
    {
      code: 'HOST_PREREQUISITE',
    },
  );
});

test('a script that a signal ends prints nothing of its own', async () => {
  const { stdout, stderr } = await runScript('echo before; kill -TERM $$').catch(
    (error: unknown) => {
      assert.ok(error instanceof ScriptFailed);
      assert.match(error.message, /was killed by SIGTERM/);
      return { stdout: error.lastLines, stderr: [] };
    },
  );
  assert.deepEqual([stdout, stderr], [['before'], []]);
});

test('a failing script is named with its status and last lines', async () => {
  await assert.rejects(
    runScript('seq 1 100; echo why >&2; exit 17'),
    (error) =>
      error instanceof ScriptFailed &&
      error.message.includes('status 17') &&
      error.lastLines.includes('why') &&
      error.lastLines.length === 10,
  );
  await assert.rejects(
    runScript('kill -9 $$'),
    (error) => isAppError(error, 'SCRIPT_FAILED') && error.message.includes('SIGKILL'),
  );
  await assert.rejects(
    runHostScript({
      path: join(directory, 'missing'),
      environment: {},
      cwd: directory,
      onLine: () => undefined,
      signal: new AbortController().signal,
      launch: children.launch,
    }),
    (error) => isAppError(error, 'SCRIPT_FAILED') && error.message.includes('cannot be run'),
  );
});

test('aborting kills the script and its children', async () => {
  const controller = new AbortController();
  const reason = new Error('canceled');
  const running = runScript('sleep 300.1 & setsid sleep 300.1 & sleep 0.2; echo began; wait', {
    signal: controller.signal,
    onLine: () => controller.abort(reason),
  });
  await assert.rejects(running, reason);
  assert.deepEqual(await pidsOf('sleep\x00300.1'), []);
});

test('what a script leaves in the background does not outlive it or hold it open', async () => {
  const { stdout } = await runScript('sleep 300.2 & echo began; exit 0');
  assert.deepEqual(stdout, ['began']);
  assert.deepEqual(await pidsOf('sleep\x00300.2'), []);
});

test('a daemon that left the group does not outlive the script', async () => {
  await runScript('setsid sh -c "echo began; exec sleep 300.5" & sleep 1');
  assert.deepEqual(await pidsOf('sleep\x00300.5'), []);
});

test('names made of the number of a script are not those of another', async () => {
  const [one, two] = await Promise.all([
    runScript('echo $$; sleep 1'),
    runScript('echo $$; sleep 1'),
  ]);
  assert.notEqual(one.stdout[0], two.stdout[0]);
});

test('what a script mounts is its own, and goes with it', async () => {
  await runScript(
    `mount -t tmpfs none ${directory}; grep -q ${directory} /proc/mounts; kill -9 $$`,
  ).catch(() => undefined);
  assert.ok(!(await readFile('/proc/mounts', 'utf8')).includes(directory));
});

test('a line without end is cut, not kept', async () => {
  const { stdout } = await runScript('head -c 50000000 /dev/zero | tr "\\0" x; echo; echo end');
  assert.deepEqual(
    stdout.map((line) => line.length),
    [65_536, 3],
  );
});

test('a secret that lies across the end of a log line leaves no part of itself', async () => {
  const path = join(directory, 'install.log');
  const log = await InstallLog.create(path, createMask(['abcdefghijkl']));
  await runScript('printf "%4090s" x; printf abcdefghijkl', { onLine: (line) => log.append(line) });
  await log.close();
  assert.equal((await readFile(path, 'utf8')).trim(), 'x<redac');
});

test('import reads the dump on stdin, export writes it on stdout', async () => {
  const copy = join(directory, 'copy');
  await runScript(`cat > ${copy}`, { stdin: Readable.from(['dump ', 'bytes']) });
  assert.equal(await readFile(copy, 'utf8'), 'dump bytes');
  const sink = new PassThrough();
  const [dump] = await Promise.all([
    text(sink),
    runScript('printf "binary\\nbytes"; echo log >&2', { stdout: sink }),
  ]);
  assert.equal(dump, 'binary\nbytes');
  await runScript('exit 0', { stdin: Readable.from([Buffer.alloc(10_000_000)]) });
});

/**
 * Returns PIDs of this host by the start of the command line, which has zero bytes between words.
 */
async function pidsOf(command: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (line.startsWith(command)) found.push(pid);
  }
  return found;
}
