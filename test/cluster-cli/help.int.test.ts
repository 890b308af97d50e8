import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runProgram } from './support/run-program.ts';

const gnt = (program: string, ...args: string[]) =>
  runProgram(`gnt-${program}`, args, { root: '/tmp/gnt-none' });

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
      'replace-token',
      'list-fields',
    ],
    os: ['list', 'diagnose', 'info', 'modify'],
    bootenv: ['create', 'list', 'list-fields', 'show', 'destroy', 'render', 'uploadiso'],
    profile: ['list', 'list-fields', 'info', 'modify', 'remove'],
    network: [
      ...['list', 'list-fields', 'info', 'add', 'modify', 'connect', 'disconnect', 'remove'],
      ...['add-tags', 'remove-tags', 'list-tags'],
    ],
    cluster: ['init', 'info', 'modify', 'verify'],
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

test('help for a command that does not exist is an error that names the nearest', async () => {
  const { status, stdout, stderr } = await runProgram('gnt-instance', ['moidfy', '--help'], {
    root: '/nonexistent',
  });
  assert.deepEqual([status, stdout], [2, '']);
  assert.match(stderr, /unknown command 'moidfy'\nhint: did you mean modify\?/);
  const far = await runProgram('gnt-instance', ['xyzzy', '--help'], { root: '/nonexistent' });
  assert.equal(far.status, 2);
  assert.match(far.stderr, /unknown command 'xyzzy'\nhint: see: gnt-instance --help/);
});
