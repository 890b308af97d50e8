import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { ConsoleLogs } from '../../noded/host/console-log.ts';
import { createLab, type Lab, type ProgramResult } from '../../scripts/demo/lab.ts';
import { addDefinitions } from './support/definitions.ts';
import { disposeLab } from './support/end-lab.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { bootSector } from '../noded/vmm/tiny-guest.ts';

/**
 * A reinstallation with bad input leaves the instance unchanged. The system is a boot sector and a
 * line, written by a trusted script on the host, so that no appliance is needed.
 */
const NAME = 'kept.example.com';
const SECRET = ['--os-parameters-secret', 'key=abcdef'];
const FIRST = 'the first system';
let lab: Lab;
let server: Server;
let base: string;
let image: string;

const SECTOR = bootSector();
const OCTAL = [...SECTOR].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
/**
 * Writes a boot sector and a line. With the text "fail" it fails after the write, with "wait" it
 * hangs after the write.
 */
const CREATE = `#!/bin/sh
{ printf '${OCTAL}'; printf '%s with %s\\n' "$OSP_TEXT" "$OSP_KEY"; } |
  dd of="$DISK_0_PATH" conv=notrunc iflag=fullblock status=none
case $OSP_TEXT in
  fail) echo 'out of luck' >&2; exit 7;;
  wait) exec sleep 600;;
esac
`;
const VERIFY = `#!/bin/sh
[ "$OSP_TEXT" != bad ] || { echo 'no such text' >&2; exit 1; }
[ "$OSP_TEXT" != hang ] || exec sleep 600
`;
/** Import, export and rename. */
const HELPER = `#!/bin/sh
[ "$OSP_TEXT" != slow ] || exec sleep 600
`;

before(async () => {
  lab = await createLab('gnt-again');
  const dir = join(lab.paths.osSearchPath[0] ?? '', 'line');
  await mkdir(dir, { recursive: true });
  for (const [name, text] of Object.entries({ create: CREATE, verify: VERIFY }))
    await writeFile(join(dir, name), text, { mode: 0o755 });
  for (const name of ['import', 'export', 'rename'])
    await writeFile(join(dir, name), HELPER, { mode: 0o755 });
  await writeFile(join(dir, 'ganeti_api_version'), '20\n');
  await writeFile(join(dir, 'parameters.list'), 'text what it is\nkey its secret\n');
  image = join(lab.paths.root, 'image.raw');
  await writeFile(image, 'an image');
  server = createServer((request, response) => {
    if (request.url === '/cut.raw') {
      response.writeHead(200, { 'content-length': 4096, 'accept-ranges': 'none' });
      response.write('x', () => response.destroy());
    } else if (request.url === '/image.raw') response.end('an image');
    else if (request.url === '/empty.raw') response.end();
    else if (request.url === '/web.tar.gz') response.end('a package');
    else response.writeHead(request.url === '/login.tar.gz' ? 401 : 404).end('no');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  base = `http://127.0.0.1:${address.port}`;
  await lab.startNode();
  await must('gnt-os', 'modify', '--trusted', 'yes', 'line');
  const system = ['-o', 'line', '-O', `text=${FIRST}`, ...SECRET, '-s', '8M'];
  await must('gnt-instance', 'add', '--no-start', ...system, NAME);
});

after(async () => {
  server.close();
  server.closeAllConnections();
  await disposeLab(lab);
});

async function must(
  ...[program, ...args]: [Parameters<Lab['run']>[0], ...string[]]
): Promise<void> {
  const { status, stderr } = await lab.run(program, args);
  assert.equal(status, 0, stderr);
}

async function info(): Promise<InstanceInfo> {
  const { body } = await askSocket(lab.paths.nodedSocket, `/v1/instances/${NAME}`);
  return instanceInfo.parse(JSON.parse(body));
}

/** Returns everything that a reinstallation could change. */
async function snapshot(): Promise<unknown> {
  const record = { ...(await info()), modifiedAtMs: 0, serialNo: 0 };
  const dir = join(lab.paths.disksDir, record.uuid);
  const files = await Promise.all(
    (await readdir(dir)).map(async (name) => {
      const digest = createHash('sha256').update(await readFile(join(dir, name)));
      return [name, digest.digest('hex')];
    }),
  );
  return { record, files };
}

async function readSystem(): Promise<string> {
  const disk = await readFile(join(lab.paths.disksDir, (await info()).uuid, 'disk0.raw'));
  return systemOf(disk);
}

function systemOf(disk: Buffer): string {
  return disk.toString('utf8', SECTOR.length).replace(/\0+$/, '');
}

/** Boots the instance until its system prints a line on the console, then stops it. */
async function assertBoots(): Promise<void> {
  await must('gnt-instance', 'startup', NAME);
  const { running } = await info();
  assert.ok(running);
  const log = new ConsoleLogs().ofProcess(running.pid);
  const deadline = Date.now() + 60_000;
  while (log?.readTail(100).includes('up') !== true) {
    assert.ok(Date.now() < deadline, 'it does not boot');
    await sleep(50);
  }
  log.close();
  await must('gnt-instance', 'shutdown', NAME);
}

function reinstall(...args: readonly string[]): Promise<ProgramResult> {
  return lab.run('gnt-instance', ['reinstall', '--force', '--no-start', ...args, NAME]);
}

async function assertFails(code: string, ...args: readonly string[]): Promise<void> {
  const { stderr } = await reinstall(...args);
  assert.match(stderr, new RegExp(`^error\\[${code}\\]: `, 'm'), `${args.join(' ')}: ${stderr}`);
}

async function untilWritten(text: string): Promise<void> {
  const dir = join(lab.paths.disksDir, (await info()).uuid);
  const deadline = Date.now() + 60_000;
  while (Date.now() < deadline) {
    for (const name of await readdir(dir))
      if (systemOf(await readFile(join(dir, name))).startsWith(text)) return;
    await sleep(50);
  }
  assert.fail(`the script never wrote '${text}'`);
}

test('with each bad input it leaves the instance as it was: disks, record, next boot and next reinstallation', async () => {
  const before = await snapshot();
  const url = (name: string): string => `${base}/${name}`;
  const withImage = (source: string): string[] => [...SECRET, '--os-image', source];
  const withPackage = (source: string): string[] => [
    ...SECRET,
    '--personalization-package',
    source,
  ];
  const login = ['--personalization-user', 'me', '--personalization-password', 'wrong-one'];
  const wrongSum = ['--os-image-checksum', `sha256:${'0'.repeat(64)}`];
  const inputs: (readonly [code: string, ...args: string[]])[] = [
    ['IMAGE_NOT_FOUND', ...withImage('/no/such.img')],
    ['IMAGE_UNREADABLE', ...withImage('/tmp')],
    ['IMAGE_SOURCE', ...withImage('gopher://example.com/x.img')],
    ['DOWNLOAD_FAILED', ...withImage(url('missing.raw'))],
    ['DOWNLOAD_FAILED', ...withImage(url('empty.raw'))],
    ['DOWNLOAD_TRUNCATED', ...withImage(url('cut.raw'))],
    ['IMAGE_CHECKSUM_MISMATCH', ...withImage(image), ...wrongSum],
    ['IMAGE_CHECKSUM_MISMATCH', ...withImage(url('image.raw')), ...wrongSum],
    ['PACKAGE_SOURCE', ...withPackage(url('x.zip'))],
    ['PACKAGE_SOURCE', ...withPackage('/no/such.tar.gz')],
    ['PACKAGE_DOWNLOAD', ...withPackage(url('missing.tar.gz'))],
    ['PACKAGE_DOWNLOAD', ...withPackage(url('login.tar.gz')), ...login],
    ['USAGE', ...withPackage(url('login.tar.gz')), ...login.slice(0, 2)],
    [
      'PACKAGE_CHECKSUM_MISMATCH',
      ...withPackage(url('web.tar.gz')),
      ...['--personalization-checksum', `sha256:${'0'.repeat(64)}`],
    ],
    ['VALIDATION', ...SECRET, '--personalization-checksum', `sha256:${'0'.repeat(64)}`],
    ['SECRETS_NEEDED'],
    ['OS_NOT_FOUND', ...SECRET, '-o', 'nothing'],
    ['OS_PARAMETER', ...SECRET, '-O', 'text=bad'],
    ['OS_PARAMETER', ...SECRET, '-O', 'colour=blue'],
    ['DUPLICATE_OS_PARAMETER', ...SECRET, '-O', 'key=public'],
    ['HOST_PREREQUISITE', ...SECRET, '--install-parameters', 'kernel_path=/no/kernel'],
  ];
  const failing = ['SCRIPT_FAILED', ...SECRET, '-O', 'text=fail'] as const;
  const overwriting = inputs.map((input) => [...input, '--no-keep-old'] as const);
  for (const [code, ...args] of [
    ...[...inputs, ...overwriting, failing],
    [...failing, '--keep-old'] as const,
  ]) {
    await assertFails(code, ...args);
    assert.deepEqual(await snapshot(), before, `${code} ${args.join(' ')}`);
  }
  await assertBoots();
  const again = await reinstall(...SECRET);
  assert.equal(again.status, 0, again.stderr);
  assert.equal(await readSystem(), `${FIRST} with abcdef\n`);
});

test('modify refuses what the next reinstallation would: it may be years away', async () => {
  const before = await snapshot();
  const [emptyPackage, emptyDisc] = ['empty.tar.gz', 'empty.iso'].map((name) =>
    join(lab.paths.root, name),
  ) as [string, string];
  for (const file of [emptyPackage, emptyDisc]) await writeFile(file, '');
  for (const [code, ...args] of [
    ['PACKAGE_SOURCE', '--personalization-package', `${base}/x.zip`],
    ['PACKAGE_SOURCE', '--personalization-package', '/no/such.tar.gz'],
    ['HOST_PREREQUISITE', '--install-parameters', 'cdrom_image_path=/no/medium.iso'],
    ['HOST_PREREQUISITE', '--install-parameters', 'kernel_path=/no/kernel'],
    ['PACKAGE_SOURCE', '--personalization-package', emptyPackage],
    ['HOST_PREREQUISITE', '--install-parameters', `cdrom_image_path=${emptyDisc}`],
    ['VALIDATION', '--os-image', image, '--install-parameters', `cdrom_image_path=${image}`],
  ]) {
    const { stderr } = await lab.run('gnt-instance', ['modify', ...args, NAME]);
    assert.match(stderr, new RegExp(`^error\\[${code}\\]: `, 'm'), `${args.join(' ')}: ${stderr}`);
    assert.deepEqual(await snapshot(), before);
  }
});

test('modify refuses a BootEnv that installs beside an image, and an image where there is no disk', async () => {
  const document = join(lab.paths.root, 'one-install.json');
  await writeFile(document, JSON.stringify({ Name: 'one-install', OS: { Name: 'one' } }));
  await must('gnt-bootenv', 'create', document);
  await must('gnt-instance', 'modify', '--os-image', image, '-C', 'yes', NAME);
  const [withImage, withoutDisk] = [NAME, 'diskless.example.com'];
  const diskless = ['-t', 'diskless', '-o', 'line', '-O', 'text=none', ...SECRET];
  await must('gnt-instance', 'add', '--no-install', '--no-start', ...diskless, withoutDisk);
  for (const [name, ...args] of [
    [withImage, '--bootenv', 'one-install'],
    [withoutDisk, '--os-image', image],
  ] as const) {
    const { stderr } = await lab.run('gnt-instance', ['modify', ...args, name]);
    assert.match(stderr, /^error\[VALIDATION\]: an OS image (needs a disk|and an)/m);
  }
  await must('gnt-instance', 'remove', '--force', withoutDisk);
  await must('gnt-instance', 'modify', '--os-image', 'none', '-C', 'no', NAME);
  await must('gnt-bootenv', 'destroy', 'one-install');
});

test('a cluster where nobody said anything gives every installation four hours', async () => {
  const { stdout } = await lab.run('gnt-cluster', ['info']);
  assert.match(stdout, /^Installation timeout: 14400 s$/m);
});

test('once a key is named, what is not signed by it leaves the instance as it was', async () => {
  const before = await snapshot();
  const keys = join(import.meta.dirname, '../../fixtures/signatures');
  const other = `${image}.minisig`;
  await writeFile(other, await readFile(join(keys, 'other.minisig')));
  await must('gnt-cluster', 'modify', '--image-key', `mine=@${join(keys, 'release.pub')}`);
  const packaged = ['--personalization-package', `${base}/web.tar.gz`];
  for (const args of [['--os-image', image], ['--os-image', `${base}/image.raw`], packaged]) {
    await assertFails('SIGNATURE_INVALID', ...SECRET, ...args);
    assert.deepEqual(await snapshot(), before, args.join(' '));
  }
  const shown = await lab.run('gnt-cluster', ['info']);
  assert.match(shown.stdout, /^ {2}mine: minisign [0-9A-Za-z+/]{43}=$/m);
  const none = await lab.run('gnt-cluster', ['modify', '--image-key', 'bad=nothing']);
  assert.match(
    none.stderr,
    /^error\[VALIDATION\]: image key 'bad': neither a minisign nor an OpenPGP public key/m,
  );
  await must('gnt-cluster', 'modify', '--image-key', 'mine=none');
  await rm(other);
});

test('one that takes too long, or is cancelled, leaves the instance as it was', async () => {
  const before = await snapshot();
  await must('gnt-cluster', 'modify', '--install-timeout', '5');
  await assertFails('INSTALL_TIMEOUT', ...SECRET, '-O', 'text=wait');
  assert.deepEqual(await snapshot(), before);
  await must('gnt-cluster', 'modify', '--install-timeout', '0');
  // The command's limit overrides the instance's.
  await must('gnt-instance', 'modify', '--install-timeout', '600', NAME);
  const limited = await snapshot();
  await assertFails('INSTALL_TIMEOUT', '--install-timeout', '5', ...SECRET, '-O', 'text=wait');
  assert.deepEqual(await snapshot(), limited);
  await must('gnt-instance', 'modify', '--install-timeout', 'default', NAME);
  const waiting = reinstall(...SECRET, '-O', 'text=wait');
  await untilWritten('wait');
  assert.equal(await readSystem(), `${FIRST} with abcdef\n`, 'the old disk is there all the while');
  await must('gnt-job', 'cancel', String((await info()).install?.jobId));
  assert.match((await waiting).stderr, /JOB_CANCELED/);
  assert.deepEqual(await snapshot(), before);
});

test('one that a kill of noded interrupts leaves the instance as it was, and the next daemon says so', async () => {
  const before = await snapshot();
  const waiting = reinstall(...SECRET, '-O', 'text=wait');
  await untilWritten('wait');
  lab.node().kill('SIGKILL');
  for (const { pid, command } of await lab.processes())
    if (command.startsWith('sleep 600')) process.kill(pid, 'SIGKILL');
  await lab.startNode();
  assert.match((await waiting).stderr, /JOB_INTERRUPTED/);
  assert.deepEqual(await snapshot(), before);
});

test('what it is given is stored when it has succeeded, and its disk is in the place of the old one', async () => {
  const { instanceId } = await info();
  const done = await reinstall(...SECRET, '-O', 'text=the second system');
  assert.equal(done.status, 0, done.stderr);
  const shown = await info();
  assert.equal(shown.osParameters['text'], 'the second system');
  assert.notEqual(shown.instanceId, instanceId);
  assert.equal(await readSystem(), 'the second system with abcdef\n');
  assert.deepEqual(await readdir(join(lab.paths.disksDir, shown.uuid)), ['disk0.raw']);
});

test('one that may overwrite the old disks does so only when what can be tried was, and keeps the parameters', async () => {
  const before = await snapshot();
  await assertFails('DOWNLOAD_FAILED', '--no-keep-old', ...SECRET, '--os-image', `${base}/no.raw`);
  assert.deepEqual(await snapshot(), before);
  await assertFails('SCRIPT_FAILED', '--no-keep-old', ...SECRET, '-O', 'text=fail');
  const failed = await info();
  assert.equal(failed.status, 'install_failed');
  assert.equal(failed.install?.error?.code, 'SCRIPT_FAILED');
  assert.equal(failed.osParameters['text'], 'the second system');
  const again = await reinstall(...SECRET);
  assert.equal(again.status, 0, again.stderr);
  assert.equal(await readSystem(), 'the second system with abcdef\n');
});

test('a guest goes on while a raw image is found larger than its disk', async () => {
  const path = join(lab.paths.root, 'large.raw');
  await writeFile(path, Buffer.alloc(9 * 1024 * 1024));
  await must('gnt-instance', 'startup', NAME);
  const pidOf = async (): Promise<number | undefined> => (await info()).running?.pid;
  const pid = await pidOf();
  assert.ok(pid);
  const raw = ['--image-format', 'raw', '--os-image', path];
  for (const safe of ['yes', 'no']) {
    const stopping = ['--shutdown-timeout', '5', `--enable-safe-install=${safe}`];
    await assertFails('IMAGE_TOO_LARGE', ...stopping, ...SECRET, ...raw);
    assert.equal(await pidOf(), pid, 'it was stopped');
  }
  await must('gnt-instance', 'shutdown', NAME);
});

test('without safe installation this host writes a raw image and runs a trusted script, with no appliance', async () => {
  const MIB = 1024 * 1024;
  const raw = Buffer.alloc(6 * MIB);
  raw.write('in the middle', 4 * MIB);
  raw.write('at its end', raw.length - 10);
  const path = join(lab.paths.root, 'whole.raw');
  await writeFile(path, raw);
  const asked = [...SECRET, '--enable-safe-install=no', '--image-format', 'raw'];
  const done = await reinstall(...asked, '--os-image', path);
  assert.equal(done.status, 0, done.stderr);
  const file = join(lab.paths.disksDir, (await info()).uuid, 'disk0.raw');
  const disk = await readFile(file);
  assert.equal(disk.length, 8 * MIB);
  assert.match(disk.toString('latin1', SECTOR.length), /^the second system with abcdef\n/);
  assert.deepEqual(disk.subarray(MIB, raw.length), raw.subarray(MIB));
  assert.ok((await stat(file)).blocks * 512 < MIB, 'what is zero is a hole');
  const stages = (await info()).install?.stages.map(({ stage }) => stage);
  assert.deepEqual(stages, ['fetch-image', 'create-disks', 'image', 'os-scripts']);

  const before = await snapshot();
  await writeFile(path, Buffer.alloc(8 * MIB + 1));
  await assertFails('IMAGE_TOO_LARGE', '--no-keep-old', ...SECRET);
  assert.deepEqual(await snapshot(), before, 'known before the disk is overwritten');
  await addDefinitions(lab, 'hello');
  const confined = await lab.run('gnt-instance', ['modify', '-o', 'hello', NAME]);
  assert.match(
    confined.stderr,
    /^error\[VALIDATION\]: OS 'hello' has only scripts for the appliance/m,
  );
  assert.deepEqual(await snapshot(), before);
  await must('gnt-instance', 'modify', '--os-image', 'none', NAME);
  await must('gnt-instance', ...['reinstall', '--force', '--no-start', ...SECRET], NAME);
});

test('verify, export and rename have a limit too: of the command, the instance or the cluster', async () => {
  await must('gnt-instance', 'modify', '--install-timeout', '1', '-O', 'text=slow', NAME);
  const verified = await lab.run('gnt-instance', ['modify', '-O', 'text=hang', NAME]);
  assert.match(verified.stderr, /^error\[OS_PARAMETER\]: .* within 1 s/m);
  const exported = await lab.run('gnt-backup', ['export', NAME]);
  assert.equal(exported.status, 1);
  assert.match(exported.stderr, /^error\[INSTALL_TIMEOUT\]: the export script .* within 1 s/m);
  assert.match(exported.stderr, /^hint: .*--install-timeout/m);

  const other = `renamed.${NAME}`;
  const renaming = ['rename', '--install-timeout', '2', NAME, other];
  const renamed = await lab.run('gnt-instance', renaming);
  assert.equal(renamed.status, 0, renamed.stderr);
  assert.match(renamed.stderr, /could not run .*rename script.* within 2 s/i);
  await must('gnt-instance', 'rename', '--install-timeout', '1', other, NAME);

  await must('gnt-instance', 'modify', '--install-timeout', 'default', '-O', 'text=quick', NAME);
  assert.equal((await info()).installTimeoutS, null);
  await must('gnt-backup', 'export', NAME);
});

test('an import has a limit, and keeps it with its instance', async () => {
  const imported = await lab.run('gnt-backup', [
    ...['import', '--no-start', '--install-timeout', '2', '-O', 'text=slow', ...SECRET],
    ...['--src-dir', NAME, 'copy.example.com'],
  ]);
  assert.match(imported.stderr, /^error\[INSTALL_TIMEOUT\]: the installation .* within 2 s/m);
  const { stdout } = await lab.run('gnt-instance', ['info', '--json', 'copy.example.com']);
  assert.equal(instanceInfo.parse(JSON.parse(stdout)).installTimeoutS, 2);
});
