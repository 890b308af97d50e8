import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type DaemonStandIn, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { type ProgramOptions, runProgram } from './support/run-program.ts';

let daemon: DaemonStandIn;
let directory: string;
before(async () => {
  daemon = await startDaemonStandIn();
  directory = await mkdtemp(join(tmpdir(), 'gnt-here-'));
});
after(async () => {
  await daemon.close();
  await rm(directory, { recursive: true });
});

const command = (args: readonly string[], options: Partial<ProgramOptions> = {}) =>
  runProgram('gnt-cluster', ['command', ...args], { root: daemon.root, ...options });

test('an interrupt ends the command at once, although a child of the shell keeps its output', async () => {
  const startedAtMs = performance.now();
  const { status, stderr } = await command(['echo begun; sleep 20; echo end'], {
    onOutput: (text, child) => text.includes('begun') && child.kill('SIGTERM'),
  });
  assert.equal(status, 130);
  assert.ok(performance.now() - startedAtMs < 15_000);
  assert.match(stderr, /error\[INTERRUPTED\]: interrupted: the command may continue on node1/);
});

test('--failure-only keeps only the last part of the output', async () => {
  const { stdout, stderr } = await command([
    '--failure-only',
    'head -c 5000000 /dev/zero | tr "\\0" "\\n"; echo last; false',
  ]);
  assert.ok(stdout.length < 2_000_000, String(stdout.length));
  assert.match(stdout, /node1: last\n$/);
  assert.match(stderr, /^node1: left out .* of earlier output$/m);
});

test('a command that a signal ends has the status of a shell', async () => {
  assert.match((await command(['kill -9 $$'])).stderr, /^node1: exit status 137$/m);
});

test('ssh ends if a node stops responding during the command', async (t) => {
  const former = daemon.otherNodes;
  t.after(() => (daemon.otherNodes = former));
  const flags = { drained: false, offline: false };
  daemon.otherNodes = [{ name: 'node2', silent: 'no answer', instances: 0, flags }];
  // The real ssh prints its settings instead of connecting.
  await writeFile(join(directory, 'ssh'), '#!/bin/sh\nexec /usr/bin/ssh -F /dev/null -G "$@"\n');
  await chmod(join(directory, 'ssh'), 0o755);
  const { stdout } = await command(['-n', 'node2', 'true'], {
    env: { PATH: `${directory}:${process.env['PATH']}` },
  });
  assert.match(stdout, /^node2: serveraliveinterval 15$/m);
  assert.match(stdout, /^node2: serveralivecountmax 3$/m);
});
