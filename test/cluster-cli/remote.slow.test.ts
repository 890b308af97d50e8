import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { debianTree } from '../lab/cached-tree.ts';
import { type DaemonStandIn, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { type ProgramEnd, runProgram } from './support/run-program.ts';

/**
 * A real sshd for one connection in a separate root. It stores files for the test's folder in
 * `received`.
 */
const SSHD = `mount -t tmpfs tmpfs "$1/run" && mkdir "$1/run/sshd"
cp "$2/host_key" "$2/authorized_keys" "$1/run" && mount --rbind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/tmp" && mkdir -p "$1$2" && mount --bind "$2/received" "$1$2"
exec chroot "$1" /usr/sbin/sshd -i -e -f /dev/null -h /run/host_key \\
  -o AuthorizedKeysFile=/run/authorized_keys -o StrictModes=no -o UsePAM=no \\
  -o 'Subsystem=sftp internal-sftp'
`;
let daemon: DaemonStandIn;
let directory: string;

async function makeKey(name: string): Promise<string> {
  const path = join(directory, name);
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path]);
  const [type, blob] = (await readFile(`${path}.pub`, 'utf8')).split(' ');
  return `${type} ${blob}`;
}

before(async () => {
  daemon = await startDaemonStandIn();
  const tree = await debianTree('sshd', ['openssh-server']);
  directory = await mkdtemp(join(tmpdir(), 'gnt-remote-'));
  await run('mkdir', [join(directory, 'received')]);
  const [hostKey, otherKey, key] = [
    await makeKey('host_key'),
    await makeKey('other_key'),
    await makeKey('id'),
  ];
  await writeFile(join(directory, 'authorized_keys'), key);
  await writeFile(join(directory, 'known'), `node2 ${hostKey}\nnode10 ${otherKey}\n`);
  await writeFile(join(directory, 'sshd'), SSHD);
  const lines = [
    'Host *',
    `UserKnownHostsFile ${directory}/known`,
    `IdentityFile ${directory}/id`,
    `ProxyCommand unshare --mount sh -ec '. ${directory}/sshd' sh ${tree} ${directory} 2>/dev/null`,
    // The command's own options come first.
    'StrictHostKeyChecking no',
  ];
  await writeFile(join(directory, 'config'), lines.join('\n'));
  for (const name of ['ssh', 'scp'])
    await writeFile(
      join(directory, name),
      `#!/bin/sh\nexec /usr/bin/${name} -F ${directory}/config "$@"\n`,
      { mode: 0o755 },
    );
  const silent = (name: string, offline = false) => ({
    ...{ name, silent: 'no answer', instances: 0, flags: { drained: false, offline } },
  });
  daemon.otherNodes = [silent('node10'), silent('node2'), silent('node3', true)];
});
after(async () => {
  await daemon.close();
  await rm(directory, { recursive: true });
});

const gnt = (...args: string[]): Promise<ProgramEnd> =>
  runProgram('gnt-cluster', args, {
    root: daemon.root,
    env: { PATH: `${directory}:${process.env['PATH']}` },
  });

test('command runs by a real ssh on each node, in order, and fails for a node with another key', async () => {
  const all = await gnt('command', 'printf', "'a\\nb'");
  assert.deepEqual(
    [all.status, all.stdout],
    [1, 'node2: a\nnode2: b\nnode1: a\nnode1: b\n'],
    all.stderr,
  );
  assert.match(all.stderr, /^node3: left out, because it is marked offline$/m);
  assert.match(all.stderr, /^node10: Host key verification failed/m);
  assert.match(all.stderr, /^error\[COMMAND_FAILED\]: failed on 1 of 4 node\(s\): node10$/m);
});

test('command hands words and options to the shell of the node, and takes no input', async () => {
  const one = await gnt('command', '-n', 'node2', '-M', 'id', '-un', ';', 'cat;', 'exit', '4');
  assert.deepEqual([one.status, one.stdout], [1, 'node2: root\n']);
  assert.match(one.stderr, /^node2: exit status 4$/m);
});

test('command prints only failures if asked, and refuses an unknown node before any', async () => {
  const quiet = await gnt('command', '-n', 'node2', '-n', 'node1', '--failure-only', 'echo', 'x');
  assert.deepEqual([quiet.status, quiet.stdout, quiet.stderr], [0, '', '']);
  const failing = ['-n', 'node2', '--failure-only', 'echo x; false'];
  assert.equal((await gnt('command', ...failing)).stdout, 'node2: x\n');
  const marker = join(directory, 'ran');
  const unknown = await gnt('command', '-n', 'node1', '-n', 'nodeX', 'touch', marker);
  assert.equal(unknown.status, 2);
  await assert.rejects(stat(marker));
});

test('a name of the store that is no host name is not given to ssh', async (t) => {
  const before = daemon.otherNodes;
  t.after(() => (daemon.otherNodes = before));
  const marker = join(directory, 'injected');
  const name = `-oProxyCommand=touch ${marker}`;
  const flags = { drained: false, offline: false };
  daemon.otherNodes = [{ name, silent: 'no answer', instances: 0, flags }];
  const { status, stderr } = await gnt('command', 'true');
  assert.equal(status, 2);
  assert.match(stderr, /error\[VALIDATION\]: '-oProxyCommand=.*' is not a valid node name/);
  await assert.rejects(stat(marker));
});

test('copyfile copies to the same path with mode and time, and reports each failure', async () => {
  const received = join(directory, 'received');
  const source = join(directory, 'a:b $(c)');
  await writeFile(source, 'content', { mode: 0o640 });
  await utimes(source, 1_000_000, 1_000_000);
  const { status, stderr } = await gnt('copyfile', source);
  assert.equal(status, 1);
  assert.match(stderr, /^node2: copied$/m);
  assert.match(stderr, /^error\[COMMAND_FAILED\]: failed on 1 of 3 node\(s\): node10$/m);
  const copy = join(received, 'a:b $(c)');
  const { mode, mtimeMs } = await stat(copy);
  assert.deepEqual(
    [await readFile(copy, 'utf8'), mode & 0o777, mtimeMs],
    ['content', 0o640, 1_000_000_000],
  );
  const folder = await gnt('copyfile', directory);
  assert.match(folder.stderr, /error\[FILE_UNREADABLE\]: \S+ is not a regular file/);
});
