import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { orNotInstalled, sshOption } from '../../../../cluster-cli/commands/instance/ssh.ts';
import { type DaemonStandIn, startDaemonStandIn } from '../../support/daemon-stand-in.ts';
import { runInProcess } from '../../support/run-in-process.ts';
import { sampleInstance } from '../../support/samples.ts';

const [KEY, OTHER] = ['A', 'B'].map(
  (last) => `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(42)}${last}`,
) as [string, string];

/**
 * Stands in for ssh and scp: writes its arguments and the known hosts. `slow` tests run OpenSSH.
 * `-G` asks whether it knows the options.
 */
const RECORDER = `#!/bin/sh
if [ "$1" = -G ]; then
  [ -e "$RECORDED/old" ] || exit 0
  echo 'command-line: line 0: Bad configuration option: knownhostscommand' >&2
  exit 255
fi
printf '%s\\n' "\${0##*/}" "$@" >"$RECORDED/words"
for word; do
  case $word in UserKnownHostsFile=*) cat "\${word#*=}" >"$RECORDED/known" ;; esac
done
exit "$(cat "$RECORDED/status")"
`;
const PATH = process.env['PATH'] ?? '';
let daemon: DaemonStandIn;
let folder = '';

before(async () => {
  daemon = await startDaemonStandIn();
  const ssh = { user: 'debian', hostKeys: [KEY], saidHostKeys: [KEY] };
  daemon.instances.push(
    sampleInstance({ name: 'web1', ssh }),
    sampleInstance({ name: 'rooted', ssh: { ...ssh, user: null } }),
    sampleInstance({ name: 'changed', ssh: { ...ssh, saidHostKeys: [OTHER] } }),
    sampleInstance({ name: 'mute' }),
  );
});
after(async () => {
  process.env['PATH'] = PATH;
  await daemon.close();
});
beforeEach(async (context) => {
  folder = await mkdtemp(join(tmpdir(), 'gnt-ssh-words-'));
  const made = folder;
  (context as { after: (fn: () => Promise<void>) => void }).after(() =>
    rm(made, { recursive: true }),
  );
  for (const program of ['ssh', 'scp'])
    await writeFile(join(folder, program), RECORDER, { mode: 0o755 });
  await writeFile(join(folder, 'status'), '0\n');
  process.env['RECORDED'] = folder;
  process.env['PATH'] = `${folder}:${PATH}`;
});

async function record(...args: readonly string[]) {
  const end = await runInProcess('gnt-instance', args, { root: daemon.root });
  const text = await readFile(join(folder, 'words'), 'utf8').catch(() => '');
  return { ...end, words: text.split('\n').slice(0, -1) };
}

/** Options without the known hosts file and the command, which have paths of this checkout. */
const TRUST = [
  ...['GlobalKnownHostsFile=/dev/null', 'StrictHostKeyChecking=yes', 'HostKeyAlias=web1'],
  ...['CheckHostIP=no', 'UpdateHostKeys=no', 'VerifyHostKeyDNS=no', 'KnownHostsCommand=none'],
  ...['ControlMaster=no', 'ControlPath=none', 'ForwardAgent=no', 'ForwardX11=no'],
].flatMap((option) => ['-o', option]);

test('ssh accepts only the keys of the record, and no way around this check', async () => {
  const { status, words, stderr } = await record('ssh', 'web1', 'uptime', '-p');
  assert.deepEqual([status, stderr], [0, '']);
  const [program, , proxy, , known, ...rest] = words;
  assert.equal(program, 'ssh');
  assert.match(proxy ?? '', /^ProxyCommand=.* 'connect' 'web1' '22'$/);
  assert.match(known ?? '', new RegExp(`^UserKnownHostsFile=/proc/${process.pid}/fd/\\d+$`));
  assert.deepEqual(rest, [...TRUST, '-l', 'debian', '--', 'web1', 'uptime', '-p']);
  assert.equal(await readFile(join(folder, 'known'), 'utf8'), `web1 ${KEY}\n`);
});

test('an ssh without KnownHostsCommand gets no such option', async () => {
  await writeFile(join(folder, 'old'), '');
  const { words } = await record('ssh', 'web1');
  assert.ok(!words.includes('KnownHostsCommand=none'));
  assert.ok(words.includes('ControlPath=none'));
});

for (const [what, args, expected] of [
  ['the reported user', ['ssh', 'web1'], ['-l', 'debian', '--', 'web1']],
  ['root without a reported user', ['ssh', 'rooted'], ['-l', 'root', '--', 'rooted']],
  ['a given user', ['ssh', '-l', 'me', 'web1'], ['-l', 'me', '--', 'web1']],
  [
    'a given key',
    ['ssh', '-i', '/k', 'web1'],
    ['-o', 'ForwardX11=no', '-i', '/k', '-l', 'debian', '--', 'web1'],
  ],
  [
    'a forwarded agent',
    ['ssh', '-A', 'web1'],
    ['-o', 'ForwardAgent=yes', '-o', 'ForwardX11=no', '-l', 'debian', '--', 'web1'],
  ],
  [
    'unchanged words of a command',
    ['exec', 'web1', 'sh', '-c', 'echo $HOME'],
    ['-T', '-l', 'debian', '--', 'web1', `'sh' '-c' 'echo $HOME'`],
  ],
] as const) {
  test(`ssh runs with ${what}`, async () => {
    const { status, words } = await record(...args);
    assert.equal(status, 0);
    assert.deepEqual(words.slice(-expected.length), expected);
  });
}

test('a port of the guest replaces the default', async () => {
  const { words } = await record('ssh', '-p', '2222', 'web1');
  assert.match(words[2] ?? '', / 'connect' 'web1' '2222'$/);
});

for (const [copy, expected] of [
  [
    ['push', 'web1', 'a', 'b:c', '/tmp/'],
    [resolve('a'), resolve('b:c'), 'web1:/tmp/'],
  ],
  [
    ['push', 'web1', 'folder/', 'x'],
    [`${resolve('folder')}/`, 'web1:x'],
  ],
  [
    ['pull', 'web1', '/etc/a', 'b', '.'],
    ['web1:/etc/a', 'web1:b', resolve('.')],
  ],
] as const) {
  test(`a copy has full local names: ${copy.join(' ')}`, async () => {
    const { status, words } = await record(...copy);
    assert.equal(status, 0);
    assert.deepEqual(words.slice(0, 4), ['scp', '-s', '-r', '-q']);
    assert.deepEqual(words.slice(-expected.length - 3), [
      ...['-o', 'User=debian', '--'],
      ...expected,
    ]);
  });
}

for (const direction of ['push', 'pull'] as const) {
  test(`${direction} with one path is refused`, async () => {
    const { status, stderr, words } = await record(direction, 'web1', 'a');
    assert.deepEqual([status, words], [2, []]);
    assert.match(stderr, new RegExp(`${direction} requires a source and a target`));
    assert.match(stderr, direction === 'push' ? /push web1 FILE \/tmp\// : /pull web1 \/etc/);
  });
}

for (const [given, args, status, message] of [
  [7, ['ssh', 'web1'], 7, /^$/],
  [255, ['ssh', 'web1'], 255, /^ssh to web1 as debian failed$/m],
  [7, ['exec', 'web1', 'false'], 7, /^$/],
  [255, ['exec', 'web1', 'false'], 255, /^ssh to web1 as debian failed$/m],
  [7, ['push', 'web1', 'a', 'b'], 1, /scp as debian failed with status 7/],
] as const) {
  test(`${args[0]} whose program ends with ${given} ends with ${status}`, async () => {
    await writeFile(join(folder, 'status'), `${given}\n`);
    const end = await record(...args);
    assert.equal(end.status, status);
    assert.match(end.stderr, message);
  });
}

test('a guest without trusted keys is not reached', async () => {
  for (const args of [
    ['ssh', 'mute'],
    ['known-hosts', 'mute'],
  ]) {
    const { status, stderr, words } = await record(...args);
    assert.deepEqual([status, words], [1, []]);
    assert.match(stderr, /SSH_HOST_KEYS.*mute are not known/);
  }
});

test('known hosts of all instances leave out those without keys and warn of other keys', async () => {
  const all = await record('known-hosts');
  assert.deepEqual(
    [all.status, all.stdout],
    [0, ['web1', 'rooted', 'changed'].map((name) => `${name} ${KEY}\n`).join('')],
  );
  const warnings = all.stderr.split('\n').filter((line) => line.startsWith('warning'));
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? '', /guest of changed reports other SSH host keys: ssh-ed25519/);
  const one = await record('known-hosts', 'web1');
  assert.deepEqual([one.status, one.stdout, one.stderr], [0, `web1 ${KEY}\n`, '']);
});

test('a percent sign in an option stays one for ssh', () => {
  assert.deepEqual(sshOption('ProxyCommand', 'a%h%%'), ['-o', 'ProxyCommand=a%%h%%%%']);
});

test('a missing ssh is named with its package; other failures stay', () => {
  const missing = Object.assign(new Error('spawn ssh'), { code: 'ENOENT' });
  const told = orNotInstalled(missing, 'ssh');
  assert.equal(told.message, 'ssh is not installed on this node');
  assert.deepEqual([told.cause, 'code' in told && told.code], [missing, 'HOST_PREREQUISITE']);
  const denied = Object.assign(new Error('spawn ssh'), { code: 'EACCES' });
  assert.equal(orNotInstalled(denied, 'ssh'), denied);
});
