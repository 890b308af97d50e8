import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { absentCommands } from '../../cluster-cli/help/absent-commands.ts';
import { isProgramName } from '../../cluster-cli/programs.ts';
import { runInProcess } from './support/run-in-process.ts';
import { runProgram } from './support/run-program.ts';

const gnt = (program: string, ...args: string[]) =>
  runInProcess(`gnt-${program}`, args, { root: '/tmp/gnt-none' });

test('every command of every program has its own help', async () => {
  const { stdout } = await gnt('instance', '--help');
  assert.match(stdout, /^Usage: gnt-instance /);
  const commands: Record<string, readonly string[]> = {
    instance: [
      'add',
      'modify',
      'reinstall',
      'remove',
      'rename',
      'startup',
      'start',
      'shutdown',
      'stop',
      'reboot',
      'list',
      'info',
      'console',
      'connect',
      'send',
      'receive',
      'metadata',
      'log',
      'hooks',
      'activate-disks',
      'batch-create',
      'replace-token',
      'list-fields',
    ],
    os: ['list', 'diagnose', 'info', 'modify'],
    bootenv: [
      ...['add', 'list', 'list-fields', 'info', 'remove', 'render', 'add-iso', 'remove-iso'],
      ...['create', 'show', 'destroy', 'uploadiso', 'listisos', 'destroyiso'],
    ],
    image: ['list-catalogues', 'catalogues'],
    profile: ['list', 'list-fields', 'info', 'modify', 'remove'],
    network: [
      ...['list', 'list-fields', 'info', 'add', 'modify', 'connect', 'disconnect', 'remove'],
      ...['add-tags', 'remove-tags', 'list-tags'],
    ],
    cluster: ['init', 'info', 'modify', 'verify', 'command', 'copyfile', 'list-tags'],
    group: ['list', 'list-fields'],
    debug: ['delay'],
    node: ['list', 'info', 'doctor'],
    job: ['list', 'info', 'watch', 'cancel'],
  };
  const asked = Object.entries(commands).flatMap(([program, names]) =>
    names.map((name) => [program, name] as const),
  );
  for (const [program, name] of asked) {
    const help = await gnt(program, name, '--help');
    assert.equal(help.status, 0, name);
    assert.match(help.stdout, new RegExp(`^Usage: gnt-${program} `), name);
    assert.match(help.stdout, /-h, --help/, name);
    assert.equal(help.stderr, '', name);
  }
});

test('on a terminal of any width, help has status 0 and no line that is wider', async () => {
  for (const columns of [60, 80, 200]) {
    for (const args of [['--help'], ['launch', '--help-all'], ['add', '--net', 'help']]) {
      const { status, stdout } = await runProgram('gnt-instance', args, {
        ...{ root: '/tmp/gnt-none', columns },
      });
      assert.equal(status, 0, `${args.join(' ')} at ${columns} columns: ${stdout}`);
      for (const line of stdout.split('\r\n')) assert.ok(line.length <= columns, line);
    }
  }
});

test('help for a command that does not exist is an error that names the nearest', async () => {
  const { status, stdout, stderr } = await runInProcess('gnt-instance', ['moidfy', '--help'], {
    root: '/nonexistent',
  });
  assert.deepEqual([status, stdout], [2, '']);
  assert.match(stderr, /unknown command 'moidfy'\nhint: Did you mean modify\?/);
  const far = await runInProcess('gnt-instance', ['xyzzy', '--help'], { root: '/nonexistent' });
  assert.equal(far.status, 2);
  assert.match(far.stderr, /unknown command 'xyzzy'\nhint: gnt-instance --help\n/);
});

test('a command of Ganeti without a counterpart ends with the reason, an alternative and status 1', async () => {
  for (const [program, ...words] of [
    ['gnt-instance', 'replace-disks', '-p', 'web1'],
    ['gnt-instance', 'replace-disks', '--help'],
    ['gnt-cluster', 'master-failover'],
    ['gnt-group', 'add', 'west'],
  ] as const) {
    const { status, stdout, stderr } = await runInProcess(program, words, { root: '/nonexistent' });
    assert.deepEqual([status, stdout], [1, '']);
    const first = `error[COMMAND_ABSENT]: ${program} ${words[0]} does not exist in gnt: `;
    assert.ok(stderr.startsWith(first) && /\nhint: .+\n$/.test(stderr), stderr);
  }
});

test('no command exists and is listed as absent, and help does not show absent ones', async () => {
  for (const [program, verbs] of Object.entries(absentCommands)) {
    if (!isProgramName(program)) continue;
    const { stdout } = await runInProcess(program, ['--help'], { root: '/nonexistent' });
    for (const verb of Object.keys(verbs))
      assert.doesNotMatch(stdout, new RegExp(`^ +${verb}\\b`, 'm'));
  }
});

test('words of other programs are told in those of here', async () => {
  for (const [program, words, hint] of [
    ['gnt-instance', ['ls'], 'use gnt-instance list'],
    ['gnt-instance', ['delete', 'web1'], 'use gnt-instance remove'],
    ['gnt-instance', ['create', 'web1'], 'use gnt-instance add or gnt-instance launch'],
    ['gnt-network', ['create', 'lan'], 'use gnt-network add'],
    ['gnt-instance', ['list', '--format', 'json'], 'Use --json, or -o FIELDS with --separator'],
    ['gnt-instance', ['launch', '--cpus', '2', 'debian/12', 'web1'], 'Use -B vcpus=2'],
  ] as const) {
    const { status, stderr } = await runInProcess(program, words, { root: '/nonexistent' });
    assert.equal(status, 2);
    assert.ok(stderr.endsWith(`\nhint: ${hint}\n`), stderr);
  }
});

test('a full disk behind what is printed is an error by its name', async () => {
  const main = join(import.meta.dirname, '../../cluster-cli/main.ts');
  const full = openSync('/dev/full', 'w');
  try {
    const { status, stderr } = spawnSync(process.execPath, [main, '--help'], {
      ...{ encoding: 'utf8', stdio: ['ignore', full, 'pipe'] },
      env: { ...process.env, GNT_PROGRAM: 'gnt-instance' },
    });
    assert.equal(status, 1);
    assert.match(stderr, /^error\[DISK_FULL\]: cannot write the output: .*\nhint: .*\n$/);
  } finally {
    closeSync(full);
  }
});

test('help of an unknown or absent command is refused as the command is', async () => {
  const help = (word: string) =>
    runInProcess('gnt-instance', ['help', word], { root: '/nonexistent' });
  assert.match(
    (await help('moidfy')).stderr,
    /unknown command 'moidfy'\nhint: Did you mean modify/,
  );
  assert.match((await help('replace-disks')).stderr, /^error\[COMMAND_ABSENT\]/);
  assert.equal((await help('modify')).status, 0);
});

test('man prints the page of the program, or that of one of its commands', async () => {
  assert.match((await gnt('instance', 'man')).stdout, /^\.TH "?GNT-INSTANCE"? /im);
  assert.match((await gnt('instance', 'man', 'reboot')).stdout, /^\.TH GNT-INSTANCE-REBOOT /);
  const unknown = await gnt('instance', 'man', 'nosuch');
  assert.deepEqual([unknown.status, unknown.stdout], [2, '']);
  assert.match(unknown.stderr, /error\[USAGE\]: gnt-instance has no command 'nosuch'/);
});
