import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { debianTree } from '../lab/cached-tree.ts';
import { type DaemonStandIn, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { runProgram } from './support/run-program.ts';
import { sampleInstance } from './support/samples.ts';

const [KEY, OTHER] = ['A', 'B'].map(
  (last) => `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(42)}${last}`,
) as [string, string];
let daemon: DaemonStandIn;

before(async () => {
  daemon = await startDaemonStandIn();
  const ssh = { user: 'debian', hostKeys: [KEY], saidHostKeys: [OTHER] };
  daemon.instances.push(sampleInstance({ name: 'web1', ssh }), sampleInstance({ name: 'mute' }));
});
after(() => daemon.close());

const gnt = (args: readonly string[], more: Record<string, string> | string = {}) =>
  runProgram('gnt-instance', args, {
    root: daemon.root,
    ...(typeof more === 'string' ? { input: more } : { env: more }),
  });

test('known-hosts prints the trusted keys, and says which others the guest claims', async () => {
  const { status, stdout, stderr } = await gnt(['known-hosts']);
  assert.deepEqual([status, stdout], [0, `web1 ${KEY}\n`]);
  assert.match(
    stderr,
    /warning: the guest of web1 reports other .* ssh-ed25519 SHA256:[\w+/]{43}\. /,
  );
});

test('without keys there is no login, and no question whether to trust whoever answers', async () => {
  for (const args of [
    ['ssh', 'mute'],
    ['known-hosts', 'mute'],
  ]) {
    const { status, stderr } = await gnt(args);
    assert.equal(status, 1);
    assert.match(stderr, /^error\[SSH_HOST_KEYS\]: the SSH host keys of mute are not known/m);
  }
});

test("ssh speaks through the daemon with the guest's sshd, and leaves no file behind", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt ssh%h-'));
  t.after(() => rm(directory, { recursive: true }));
  let said = '';
  daemon.onRaw = (socket, path) => {
    assert.equal(path, '/v1/instances/web1/connect/2222');
    socket.write('SSH-2.0-test\r\n');
    socket.once('data', (chunk: Buffer) => {
      said = chunk.toString('latin1');
      socket.end();
    });
  };
  const { status, stderr } = await gnt(['ssh', '-p', '2222', 'web1', '--', 'true', '-x'], {
    TMPDIR: directory,
  });
  assert.equal(status, 255, stderr);
  assert.match(said, /^SSH-2\.0-OpenSSH/);
  assert.match(stderr, /^ssh to web1 as debian failed$/m);
  assert.deepEqual(await readdir(directory), []);
});

test('a command that is killed while it talks to a guest leaves no file either', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-ssh-killed-'));
  t.after(() => rm(directory, { recursive: true }));
  let kill = (): void => undefined;
  daemon.onRaw = (socket) => {
    kill();
    socket.end();
  };
  const { status } = await runProgram('gnt-instance', ['ssh', 'web1', '--', 'true'], {
    root: daemon.root,
    env: { TMPDIR: directory },
    onStart: (child) => {
      kill = () => void child.kill('SIGKILL');
    },
  });
  assert.equal(status, null);
  assert.deepEqual(await readdir(directory), []);
});

/** A user's own configuration for other hosts. */
const OWN_CONFIGURATION = `Host *
  ControlMaster auto
  ControlPath /tmp/master-%C
  ControlPersist yes
  KnownHostsCommand /bin/echo %H ${OTHER}
  UserKnownHostsFile /dev/null
  StrictHostKeyChecking no
  ForwardAgent yes
  ForwardX11 yes
  ServerAliveInterval 17
`;

test("the user's configuration counts, but for another way to be sure of the host", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-ssh-config-'));
  t.after(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, 'config'), OWN_CONFIGURATION);
  // The host's real ssh prints its configuration. The stand-in of a release of 2020 does not know
  // the newest option.
  const stand = (refuse: string): string => `#!/bin/sh
PATH=\${PATH#*:}
${refuse}
case " $* " in *' -G '*) exec ssh "$@" ;; esac
exec ssh -G -F '${directory}/config' "$@"
`;
  const older = `case "$*" in *nownHostsCommand*)
  echo 'command-line: line 0: Bad configuration option: knownhostscommand' >&2; exit 255 ;;
esac`;
  const effective = async (refuse: string, args: readonly string[]) => {
    await writeFile(join(directory, 'ssh'), stand(refuse), { mode: 0o755 });
    const end = await gnt(['ssh', ...args, 'web1'], {
      PATH: `${directory}:${process.env['PATH']}`,
    });
    assert.equal(end.status, 0, end.stderr);
    return new Map(end.stdout.split('\n').map((line) => line.split(/ (.*)/s) as [string, string]));
  };
  const of = (said: ReadonlyMap<string, string>, ...keys: readonly string[]) =>
    keys.map((key) => said.get(key) ?? 'none');
  const said = await effective('', []);
  assert.deepEqual(of(said, 'serveraliveinterval', 'stricthostkeychecking'), ['17', 'true']);
  assert.deepEqual(of(said, 'controlmaster', 'controlpath'), ['false', 'none']);
  assert.equal(of(said, 'knownhostscommand')[0], 'none');
  assert.deepEqual(of(said, 'forwardagent', 'forwardx11'), ['no', 'no']);
  assert.deepEqual(of(await effective('', ['-A']), 'forwardagent'), ['yes']);
  assert.deepEqual(of(await effective(older, []), 'controlpath'), ['none']);
});

const FINGERPRINT = /SHA256:[\w+/]{43}/;
interface Accepted {
  readonly hostKeys?: readonly string[];
  readonly instanceId?: string;
}
const accepted = (): readonly Accepted[] => daemon.submitted as readonly Accepted[];

test('what an operator accepts are the very keys that the guest was heard to say, of that guest', async () => {
  daemon.submitted.length = 0;
  const { status, stderr } = await gnt(['modify', '--accept-host-keys', '--force', 'web1']);
  assert.equal(status, 0, stderr);
  const { instanceId } = daemon.instances.find(({ name }) => name === 'web1') ?? assert.fail();
  assert.deepEqual(
    accepted().map((opcode) => [opcode.hostKeys, opcode.instanceId]),
    [[[OTHER], instanceId]],
  );
  assert.match(stderr, /^accepting ssh-ed25519 SHA256:/m);
  assert.equal((await gnt(['modify', '--accept-host-keys', '--force', 'mute'])).status, 1);
});

test('without a terminal no host key is trusted unless its fingerprint is given', async () => {
  daemon.submitted.length = 0;
  const unasked = await gnt(['modify', '--accept-host-keys', 'web1']);
  assert.equal(unasked.status, 2);
  assert.match(unasked.stderr, /--accept-fingerprint/);
  const [fingerprint = ''] = FINGERPRINT.exec(unasked.stderr) ?? [];
  const another = fingerprint.replace(/.{3}$/, 'abc');
  assert.equal((await gnt(['modify', '--accept-fingerprint', another, 'web1'])).status, 1);
  assert.deepEqual(accepted(), []);
  const named = await gnt(['modify', '--accept-fingerprint', fingerprint, 'web1']);
  assert.equal(named.status, 0, named.stderr);
  assert.deepEqual(accepted()[0]?.hostKeys, [OTHER]);
});

test('on a terminal the keys are shown before anything is accepted', async () => {
  for (const [answer, count] of [
    ['n', 0],
    ['y', 1],
  ] as const) {
    daemon.submitted.length = 0;
    let isAnswered = false;
    const { stdout } = await runProgram('gnt-instance', ['modify', '--accept-host-keys', 'web1'], {
      root: daemon.root,
      columns: 300,
      holdInput: true,
      onOutput: (text, child) => {
        if (!text.includes('Continue? [y/N]') || isAnswered) return;
        isAnswered = true;
        child.stdin?.end(`${answer}\n`);
      },
    });
    assert.match(stdout, FINGERPRINT);
    assert.equal(accepted().length, count, stdout);
  }
});

/**
 * A real sshd for one connection in a separate root, with host key and authorized keys from
 * `directory`, as its installation would have written them.
 */
const SSHD = `mount -t tmpfs tmpfs "$1/run" && mkdir "$1/run/sshd"
cp "$2/host_key" "$2/authorized_keys" "$1/run" && mount --rbind /dev "$1/dev"
exec chroot "$1" /usr/sbin/sshd -i -e -f /dev/null -h /run/host_key \\
  -o AuthorizedKeysFile=/run/authorized_keys -o StrictModes=no -o UsePAM=no \\
  -o 'Subsystem=sftp internal-sftp'
`;

async function makeKey(path: string): Promise<string> {
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path]);
  const [type, blob] = (await readFile(`${path}.pub`, 'utf8')).split(' ');
  return `${type} ${blob}`;
}

test('a real sshd is logged in to when its key is the trusted one, and refused with any other', async (t) => {
  const tree = await debianTree('sshd', ['openssh-server']);
  const directory = await mkdtemp(join(tmpdir(), 'gnt-sshd-'));
  t.after(() => rm(directory, { recursive: true }));
  const hostKey = await makeKey(join(directory, 'host_key'));
  await writeFile(join(directory, 'authorized_keys'), await makeKey(join(directory, 'id')));
  const machine = (name: string, key: string): void => {
    const ssh = { user: 'root', hostKeys: [key], saidHostKeys: [] };
    daemon.instances.push(sampleInstance({ name, ssh }));
  };
  machine('true1', hostKey);
  machine('false1', OTHER);
  const ends: Promise<unknown>[] = [];
  daemon.onRaw = (socket) => {
    const sshd = spawn('unshare', ['--mount', 'sh', '-ec', SSHD, 'sh', tree, directory], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    ends.push(once(sshd, 'close'));
    sshd.stdin.on('error', () => undefined);
    socket.pipe(sshd.stdin);
    sshd.stdout.pipe(socket);
  };
  const login = (name: string) =>
    gnt(['ssh', '-i', join(directory, 'id'), name, '--', 'id -un; exit 7']);
  const good = await login('true1');
  assert.deepEqual([good.status, good.stdout], [7, 'root\n'], good.stderr);
  const bad = await login('false1');
  assert.deepEqual([bad.status, bad.stdout], [255, '']);
  assert.match(bad.stderr, /Host key verification failed/);

  const key = ['-i', join(directory, 'id')];
  // Words that a shell would split, and the command's own status.
  const words = ['printf', '%s|', 'a b', "it's", '$HOME;id', ''];
  const exec = await gnt(['exec', ...key, 'true1', '--', ...words]);
  assert.deepEqual([exec.status, exec.stdout], [0, "a b|it's|$HOME;id||"], exec.stderr);
  // As with ssh, options after the command's first word belong to the command.
  const failed = await gnt(['exec', 'true1', ...key, 'sh', '-c', 'cat; exit 9'], 'sent in');
  assert.deepEqual([failed.status, failed.stdout], [9, 'sent in'], failed.stderr);
  assert.equal((await gnt(['exec', ...key, 'false1', '--', 'true'])).status, 255);

  // A local name may contain a colon.
  const [there, back] = [join(directory, 'a:b c'), join(directory, 'back')];
  await writeFile(there, 'pushed');
  const pushed = await gnt(['push', ...key, 'true1', there, '/run/']);
  assert.equal(pushed.status, 0, pushed.stderr);
  // Each login has a separate root, so the pushed file is gone and the tree is unchanged.
  await mkdir(back);
  const pulled = await gnt(['pull', ...key, 'true1', '/etc/debian_version', '/etc/ssh', back]);
  assert.equal(pulled.status, 0, pulled.stderr);
  const version = await readFile(join(tree, 'etc/debian_version'), 'utf8');
  assert.equal(await readFile(join(back, 'debian_version'), 'utf8'), version);
  assert.ok((await readdir(join(back, 'ssh'))).includes('moduli'));
  const missing = await gnt(['pull', ...key, 'true1', '/no/such', back]);
  assert.deepEqual([missing.status, /COMMAND_FAILED/.test(missing.stderr)], [1, true]);
  assert.equal((await gnt(['push', ...key, 'false1', there, '/run/'])).status, 1);
  assert.equal((await gnt(['push', 'true1', there])).status, 2);
  await Promise.all(ends);
});
