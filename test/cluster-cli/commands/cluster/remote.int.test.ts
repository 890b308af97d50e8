import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type DaemonStandIn, startDaemonStandIn } from '../../support/daemon-stand-in.ts';
import { runInProcess } from '../../support/run-in-process.ts';

let daemon: DaemonStandIn;
before(async () => {
  daemon = await startDaemonStandIn();
});
after(() => daemon.close());

/** Runs a command on the only node, `node1`, whose shell is that of the test. */
const gnt = (...args: string[]) =>
  runInProcess('gnt-cluster', ['command', ...args], { root: daemon.root });

test('each line has the name of the node, also a line in several pieces or without an end', async () => {
  const pieces = await gnt('printf a; sleep 0.1; printf "b\\n\\nc"');
  assert.deepEqual([pieces.status, pieces.stdout], [0, 'node1: ab\nnode1: \nnode1: c\n']);
  assert.deepEqual(await gnt('echo', 'x', '>&2'), {
    ...{ status: 0, stdout: '', stderr: 'node1: x\n' },
  });
  assert.equal((await gnt('true')).stdout, '');
});

test('a command reads no input', async () => {
  const { status, stdout } = await runInProcess('gnt-cluster', ['command', 'cat'], {
    root: daemon.root,
    input: 'typed',
  });
  assert.deepEqual([status, stdout], [0, '']);
});

test('a failure is reported with exit status, or with 128 and the number of a signal', async () => {
  const failed = await gnt('exit 3');
  assert.equal(failed.status, 1);
  assert.match(failed.stderr, /^node1: exit status 3$/m);
  assert.match(failed.stderr, /^error\[COMMAND_FAILED\]: failed on 1 of 1 node\(s\): node1$/m);
  assert.match((await gnt('kill -KILL $$')).stderr, /^node1: exit status 137$/m);
});

test('--failure-only prints the output of a failed command, in order, and no other', async () => {
  const quiet = await gnt('--failure-only', 'echo out; echo err >&2');
  assert.deepEqual([quiet.status, quiet.stdout, quiet.stderr], [0, '', '']);
  const failed = await gnt('--failure-only', 'echo out; echo err >&2; exit 1');
  assert.equal(failed.stdout, 'node1: out\n');
  assert.match(failed.stderr, /^node1: err\nnode1: exit status 1\n/);
});

test('--failure-only keeps the last MiB, and states how much it left out', async () => {
  const { stdout, stderr } = await gnt(
    '--failure-only',
    'head -c 3000000 /dev/zero | tr "\\0" x; echo end; exit 1',
  );
  assert.ok(stdout.length > 900_000 && stdout.length <= 2 ** 20, String(stdout.length));
  assert.ok(stdout.endsWith('xend\n'));
  assert.match(stderr, /^node1: left out \d\.\d MiB of earlier output\n/m);
});

test('an interrupt ends the command at once, although a child keeps its output open', async () => {
  const { status, stderr } = await runInProcess(
    'gnt-cluster',
    ['command', 'echo begun; sleep 3 & wait'],
    { root: daemon.root, onOutput: (text, interrupt) => text.includes('begun') && interrupt() },
  );
  assert.notEqual(status, 0);
  assert.match(stderr, /error\[INTERRUPTED\]: interrupted: the command may continue on node1/);
});

test('an unknown node is refused before any command, and an offline node is left out', async (t) => {
  const unknown = await gnt('-n', 'node1', '-n', 'nodeX', 'echo ran');
  assert.deepEqual([unknown.status, unknown.stdout], [2, '']);
  daemon.otherNodes = [
    {
      ...{ name: 'node2', silent: 'no answer', instances: 0 },
      flags: { drained: false, offline: true },
    },
  ];
  t.after(() => (daemon.otherNodes = []));
  const both = await gnt('echo ran');
  assert.deepEqual([both.status, both.stdout], [0, 'node1: ran\n']);
  assert.match(both.stderr, /^node2: left out, because it is marked offline$/m);
});

test('copyfile has no other node, and refuses a path that is not a file', async () => {
  const copy = (file: string) =>
    runInProcess('gnt-cluster', ['copyfile', file], { root: daemon.root });
  assert.match((await copy('/etc/hostname')).stderr, /^there is no other node$/m);
  assert.match((await copy('/etc')).stderr, /FILE_UNREADABLE.*not a regular file/);
  assert.match((await copy('/nonexistent')).stderr, /FILE_UNREADABLE.*ENOENT/);
});
