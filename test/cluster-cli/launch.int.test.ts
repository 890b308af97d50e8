import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { promisify } from 'node:util';
import type { ResolvedImage } from '#shared/contract/image-catalogue.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { GIB } from '#shared/units/bytes.ts';
import { type DaemonStandIn, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { runInProcess } from './support/run-in-process.ts';
import { sampleCluster, sampleInstance } from './support/samples.ts';

const [KEY, OTHER] = ['A', 'B'].map((last) => `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5${last}`) as [
  string,
  string,
];
const CHECKSUM = `sha256:${'a'.repeat(64)}`;
const image: ResolvedImage = {
  ...{ name: 'debian/12', catalogue: 'built-in', source: 'https://a.example/d.qcow2' },
  ...{ checksum: CHECKSUM, user: 'debian', minDiskBytes: 3 * GIB, format: 'qcow2' },
  ...{ cloudInit: null, verified: 'https', isOffline: false },
};
let daemon: DaemonStandIn;
let home = '';

before(async () => {
  daemon = await startDaemonStandIn();
});
after(() => daemon.close());
beforeEach(async (context) => {
  home = await mkdtemp(join(tmpdir(), 'gnt-home-'));
  const folder = home;
  (context as { after: (fn: () => Promise<void>) => void }).after(() =>
    rm(folder, { recursive: true }),
  );
  process.env['HOME'] = home;
  process.env['SSH_AUTH_SOCK'] = '/nonexistent';
  await mkdir(join(home, '.ssh'));
  await writeFile(join(home, '.ssh/id.pub'), `${KEY} me@here\n`);
  daemon.submitted.length = 0;
  daemon.cluster = sampleCluster();
  daemon.image = image;
});

const launch = (...args: readonly string[]) =>
  runInProcess('gnt-instance', ['launch', ...args], { root: daemon.root });

async function launched(...args: readonly string[]): Promise<OpcodeOf<'INSTANCE_CREATE'>> {
  daemon.submitted.length = 0;
  const { status, stderr } = await launch('--no-wait', ...args);
  assert.equal(status, 0, stderr);
  const [opcode] = daemon.submitted;
  assert.ok(opcode?.opcode === 'INSTANCE_CREATE');
  return opcode;
}

test('one line makes a machine to log in to, of an image with its checksum', async () => {
  const { status, stderr } = await launch('--no-wait', 'debian/12', 'web1');
  assert.equal(status, 0, stderr);
  assert.match(stderr, /^log in: gnt-instance ssh -l debian web1$/m);
  const [opcode] = daemon.submitted as OpcodeOf<'INSTANCE_CREATE'>[];
  assert.ok(opcode !== undefined);
  const { osImage, osImageChecksum, communication, disks, nics, sshKeys, start } = opcode;
  assert.deepEqual([osImage, osImageChecksum], [image.source, CHECKSUM]);
  assert.deepEqual([communication, start, sshKeys], [true, true, [`${KEY} me@here`]]);
  assert.deepEqual(disks, [{ sizeBytes: 10 * GIB }]);
  assert.deepEqual(
    nics.map(({ mode }) => mode),
    ['user'],
  );
  assert.match(
    stderr,
    /image \S+: https:\S+, verified by the checksums of the publisher, over https/,
  );
  assert.doesNotMatch(stderr, /the disk has/);
  daemon.image = { ...image, minDiskBytes: 20 * GIB };
  const large = await launch('--no-wait', 'debian/12', 'web1');
  assert.match(
    large.stderr,
    /the disk has 20(\.0)? ?GiB: debian\/12 requires more than the default of 10/i,
  );
  assert.deepEqual((await launched('debian/12', 'web1')).disks, [{ sizeBytes: 20 * GIB }]);
});

test('who logs in is not guessed of an image that does not say, nor beside user data', async () => {
  const data = join(home, 'init.yaml');
  await writeFile(data, '#cloud-config\nusers: [{name: anna}]\n');
  const own = await launch('--no-wait', '--user-data', data, 'debian/12', 'web1');
  assert.match(own.stderr, /^log in: gnt-instance ssh web1$/m);
  daemon.image = { ...image, user: null };
  const silent = await launch('--no-wait', 'debian/12', 'web1');
  assert.match(silent.stderr, /^log in: gnt-instance ssh web1$/m);
});

test('a first disk that is too small for the image is refused, before anything is made', async () => {
  const add = ['add', '--os-image', 'debian/12'];
  for (const words of [
    ['launch', '-s', '2G', 'debian/12', 'web1'],
    ['launch', '--disk', '0:size=2G', '--disk', '1:size=9G', 'debian/12', 'web1'],
    [...add, '-s', '2G', 'web1'],
  ]) {
    const { status, stderr } = await runInProcess('gnt-instance', words, { root: daemon.root });
    assert.deepEqual([status, daemon.submitted], [2, []], stderr);
    assert.match(
      stderr,
      /^error\[VALIDATION\]: debian\/12 requires a disk of 3.0 GiB, and .* 2.0 GiB$/m,
    );
    assert.match(stderr, /^hint: Give -s 3072M or more; .*https:\/\/a\.example\/d\.qcow2$/m);
  }
  assert.deepEqual((await launched('-s', '3G', 'debian/12', 'web1')).disks, [
    { sizeBytes: 3 * GIB },
  ]);
  const known = await launched('-s', '2G', image.source, 'web1');
  assert.deepEqual(known.disks, [{ sizeBytes: 2 * GIB }]);
});

test('a file of here takes no name of an image away, and is one only by its path', async (t) => {
  const cwd = join(home, 'here');
  await mkdir(join(cwd, 'debian'), { recursive: true });
  const before = process.cwd();
  t.after(() => process.chdir(before));
  process.chdir(cwd);
  await writeFile(join(cwd, 'debian/12'), 'of whoever may write here');
  const submit = async (command: string, path: string): Promise<Record<string, unknown>> => {
    daemon.submitted.length = 0;
    const force = command === 'reinstall' ? ['-f'] : [];
    const args = [command, ...force, '--os-image', path, 'web1'];
    const { status, stderr } = await runInProcess('gnt-instance', args, { root: daemon.root });
    assert.equal(status, 0, stderr);
    return { ...daemon.submitted[0] };
  };
  for (const command of ['add', 'reinstall', 'modify']) {
    const named = await submit(command, 'debian/12');
    assert.deepEqual([named['osImage'], named['osImageChecksum']], [image.source, CHECKSUM]);
    const file = await submit(command, './debian/12');
    assert.deepEqual(
      [file['osImage'], file['osImageChecksum']],
      [join(cwd, 'debian/12'), undefined],
    );
  }
  await writeFile(join(cwd, 'Disk.img'), 'a disk');
  const words = ['add', '--os-image', 'Disk.img', 'w'];
  const refused = await runInProcess('gnt-instance', words, { root: daemon.root });
  assert.equal(refused.status, 2, refused.stderr);
  assert.match(refused.stderr, /'Disk\.img' is neither a name .*\n.*\.\/NAME/);
});

test('a certificate that an agent holds is no key of the guest', async (context) => {
  const run = promisify(execFile);
  const [authority, key] = [join(home, 'authority'), join(home, 'key')];
  for (const path of [authority, key])
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path]);
  await run('ssh-keygen', ['-q', '-s', authority, '-I', 'me', '-n', 'me', `${key}.pub`]);
  const socket = join(home, 'agent');
  const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: ['ignore', 'pipe', 'ignore'] });
  context.after(() => agent.kill());
  await once(agent.stdout, 'data');
  process.env['SSH_AUTH_SOCK'] = socket;
  await run('ssh-add', ['-q', key]);
  const { stdout } = await run('ssh-add', ['-L']);
  assert.match(stdout, /-cert-v01@openssh\.com AAAA/);
  const args = ['launch', '--no-wait', 'debian/12', 'web1'];
  const { status, stderr } = await runInProcess('gnt-instance', args, { root: daemon.root });
  assert.equal(status, 0, stderr);
  const [opcode] = daemon.submitted as OpcodeOf<'INSTANCE_CREATE'>[];
  const types = opcode?.sshKeys?.map((each) => each.split(' ')[0]);
  assert.deepEqual(types, ['ssh-ed25519', 'ssh-ed25519']);
});

test("an option counts before the user's file, and that before the cluster's settings", async () => {
  daemon.cluster = {
    ...sampleCluster(),
    launchDefaults: { diskBytes: 12 * GIB, memoryMiB: 700, net: 'mode=bridged,link=br0' },
  };
  const ofCluster = await launched('debian/12', 'web1');
  assert.equal(ofCluster.nics[0]?.link, 'br0');
  assert.deepEqual(ofCluster.disks, [{ sizeBytes: 12 * GIB }]);
  await mkdir(join(home, '.config/gnt'), { recursive: true });
  await writeFile(join(home, 'other.pub'), OTHER);
  const own = 'launch: {size: 14G, memory: 800M, vcpus: 3, net: none, ssh_keys: [~/other.pub]}';
  await writeFile(join(home, '.config/gnt/config.yaml'), own);
  const ofUser = await launched('debian/12', 'web1');
  assert.deepEqual([ofUser.nics, ofUser.sshKeys], [[], [OTHER]]);
  assert.deepEqual(ofUser.beparams, { memoryMiB: 800, vcpus: 3 });
  assert.deepEqual(ofUser.disks, [{ sizeBytes: 14 * GIB }]);
  const given = ['-s', '16G', '-B', 'memory=900M', '--net', '0:mode=user', '-C', 'no'];
  const ofCommand = await launched(...given, 'debian/12', 'web1');
  assert.deepEqual(ofCommand.beparams, { memoryMiB: 900, vcpus: 3 });
  assert.deepEqual(ofCommand.disks, [{ sizeBytes: 16 * GIB }]);
  assert.equal(ofCommand.nics[0]?.mode, 'user');
  assert.equal(ofCommand.communication, false);
  assert.deepEqual((await launched('--no-nics', 'debian/12', 'web1')).nics, []);
});

test('a machine that nobody could log in to is refused, before anything is made', async () => {
  await rm(join(home, '.ssh/id.pub'));
  await writeFile(join(home, '.ssh/odd.pub'), '-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n');
  const refused = await launch('debian/12', 'web1');
  assert.equal(refused.status, 2, refused.stderr);
  assert.match(refused.stderr, /warning: .*odd\.pub is skipped/);
  assert.match(refused.stderr, /error\[VALIDATION\]: no login is possible/);
  assert.match(refused.stderr, /hint: .*ssh-keygen/);
  assert.doesNotMatch(refused.stderr, /secret/);
  assert.deepEqual(daemon.submitted, []);
});

test("a mistake in the user's file is told by its field, and stops the command", async () => {
  await mkdir(join(home, '.config/gnt'), { recursive: true });
  for (const [text, told] of [
    ['launch: {vcpus: many}', /config\.yaml: launch\.vcpus: /],
    ['launch: {discs: 1}', /config\.yaml: launch: .*discs/],
    ['launch: [', /config\.yaml: line 1/],
    ['launch: {size: 1.2.3}', /'1\.2\.3' is not a size/],
  ] as const) {
    await writeFile(join(home, '.config/gnt/config.yaml'), text);
    const { status, stderr } = await launch('--no-wait', 'debian/12', 'web1');
    assert.deepEqual([status, daemon.submitted], [2, []], stderr);
    assert.match(stderr, told);
  }
});

test('the name and the image the other way round are told apart before any is looked for', async () => {
  for (const [words, told] of [
    [['web1', 'debian/12'], /error\[USAGE\]: name: 'debian\/12': not a valid instance name/],
    [['', 'web1'], /error\[USAGE\]: the name of the image is empty/],
  ] as const) {
    const { status, stderr } = await launch(...words);
    assert.deepEqual([status, daemon.submitted], [2, []], stderr);
    assert.match(stderr, told);
    assert.match(
      stderr,
      /^hint: The image is the first argument: gnt-instance launch debian\/12 web1$/m,
    );
  }
});

test('a failed installation leaves what add would leave', async () => {
  assert.equal((await launched('--on-failure', 'remove', 'debian/12', 'web1')).onFailure, 'remove');
});

test('Ctrl-C while it waits leaves the machine, and says how to go on', async () => {
  const { running } = sampleInstance();
  assert.ok(running);
  daemon.instances.push(
    sampleInstance({ name: 'web1', running: { ...running, readyAtMs: null }, boot: null }),
  );
  let isInterrupted = false;
  const { status, stderr } = await runInProcess('gnt-instance', ['launch', 'debian/12', 'web1'], {
    root: daemon.root,
    onOutput: (text, interrupt) => {
      if (isInterrupted || !text.includes('waiting up to')) return;
      isInterrupted = true;
      interrupt();
    },
  });
  daemon.instances.length = 0;
  assert.equal(status, 130, stderr);
  assert.match(
    stderr,
    /^error\[INTERRUPTED\]: stopped waiting for web1; the instance keeps running$/m,
  );
  assert.match(stderr, /^hint: .*gnt-instance ssh web1 logs in when it is ready$/m);
});
