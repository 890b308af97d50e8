import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, statfs, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { findSecret } from '../../scripts/demo/find-secret.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { createLab, type Lab, type ProgramResult } from '../../scripts/demo/lab.ts';
import { assertRefused } from './support/ask-nodes.ts';
import { disposeLab } from './support/end-lab.ts';
import { listenOnLoopback } from '../lab/listen-on-loopback.ts';

/**
 * Refusals without a guest: each with its exit status, its code, the offending value, and no
 * change.
 */
/** `EXT4_SUPER_MAGIC`, statfs(2): files of at most 16 TiB. */
const EXT4_MAGIC = 0xef53;
let lab: Lab;
const PEM = (text: string) => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`;

before(async () => {
  lab = await createLab('gnt-refuse');
  await lab.startNode();
});

after(() => disposeLab(lab));

async function instanceNames(): Promise<string> {
  return (await lab.run('gnt-instance', ['list', '--no-headers', '-o', 'name'])).stdout.trim();
}

test("refuses an instance without OS, image or medium in Ganeti's words", async () => {
  const result = await lab.run('gnt-instance', ['add', 'a.example.com']);
  assertRefused(result, 2, 'VALIDATION', /No guest OS or OS image specified/);
  assert.equal(await instanceNames(), '');
});

test('refuses an authority that is no certificate, and a private key beside one', async () => {
  for (const given of ['nonsense', '-----BEGIN PRIVATE KEY-----', `${PEM('aaaa')}${PEM('')}`]) {
    const result = await lab.run('gnt-cluster', ['modify', '--image-ca', given]);
    assertRefused(result, 2, 'VALIDATION', /--image-ca/);
  }
  const { stdout } = await lab.run('gnt-cluster', ['info', '--json']);
  assert.equal('imageCa' in (JSON.parse(stdout) as object), false);
});

for (const [name, args, offender] of [
  ['more memory than the host has', ['-B', 'memory=900T', '--os-image', '/etc/hostname'], /memory/],
  ['a disk of two megabytes by mistake', ['-s', '2', '--os-image', '/etc/hostname'], /Write 2G/],
] as const) {
  test(`refuses ${name}`, async () => {
    const result = await lab.run('gnt-instance', ['add', ...args, 'a.example.com']);
    assert.equal(result.status, 2, result.stderr);
    assert.match(result.stderr, offender);
    assert.equal(await instanceNames(), '');
  });
}

test('refuses a disk that is larger than a file can be', async (t) => {
  const { type } = await statfs(lab.paths.root);
  if (type !== EXT4_MAGIC) return t.skip('this file system has larger files than ext4');
  const args = ['add', '-s', '500T', '--os-image', '/etc/hostname', 'a.example.com'];
  const result = await lab.run('gnt-instance', args);
  assertRefused(result, 2, 'VALIDATION', /512000 GiB/);
  assert.equal(await instanceNames(), '');
});

test('refuses an image that is not there by its path', async () => {
  const result = await lab.run('gnt-instance', [
    'add',
    '--os-image',
    '/no/such.img',
    'a.example.com',
  ]);
  assertRefused(result, 2, 'IMAGE_NOT_FOUND', /\/no\/such\.img/);
  assert.equal(await instanceNames(), '');
});

test('refuses an image that is a folder by its path', async () => {
  const result = await lab.run('gnt-instance', ['add', '--os-image', '/tmp', 'a.example.com']);
  assertRefused(result, 2, 'IMAGE_UNREADABLE', /\/tmp/);
});

test("refuses an OS that is in no search path in Ganeti's words", async () => {
  const result = await lab.run('gnt-instance', ['add', '-o', 'nothing', 'a.example.com']);
  assertRefused(result, 2, 'OS_NOT_FOUND', /nothing/);
});

test('refuses one parameter in two visibilities and withholds its values', async () => {
  const result = await lab.run('gnt-instance', [
    'add', '--os-image', '/etc/hostname', '-O', 'key=VALUE-A', '--os-parameters-private', 'key=VALUE-B', 'a.example.com',
  ]); // prettier-ignore
  assertRefused(
    result,
    2,
    'DUPLICATE_OS_PARAMETER',
    /Cannot assign multiple values to OS parameters/,
  );
  assert.doesNotMatch(result.stderr + result.stdout, /VALUE-/);
});

test('refuses a package of another extension by name', async () => {
  const result = await lab.run('gnt-instance', [
    'add', '--os-image', '/etc/hostname', '--personalization-package', 'http://127.0.0.1/x.zip', 'a.example.com',
  ]); // prettier-ignore
  assertRefused(result, 2, 'PACKAGE_SOURCE', /x\.zip/);
});

test('refuses by name a medium that would never boot, and what it does not know of', async () => {
  const refused: readonly (readonly [RegExp, ...string[]])[] = [
    [/floppies are not supported/, 'boot_order=floppy'],
    [/no NIC that can boot from a network[^]*hint: .*mode=bridged/, 'boot_order=network'],
    [/finds no PXE server/, 'boot_order=network:disk', '--net', '0:mode=user'],
    [/names no installation medium/, 'boot_order=disk'],
    [/need a kernel_path/, 'kernel_args=auto=true'],
    [/'http:\/\/a\.example\/linux' is not an absolute path/, 'kernel_path=http://a.example/linux'],
    [/exclude each other/, 'cdrom_image_path=/etc/hostname', '--os-image', '/etc/hostname'],
  ];
  for (const [text, parameters = '', ...more] of refused) {
    const args = ['add', '--install-parameters', parameters, ...more, 'a.example.com'];
    assertRefused(await lab.run('gnt-instance', args), 2, 'VALIDATION', text);
  }
  const floppy = [
    'add',
    '--install-parameters',
    'floppy_image_path=/etc/hostname',
    'a.example.com',
  ];
  const unknown = await lab.run('gnt-instance', floppy);
  assertRefused(unknown, 2, 'USAGE', /'floppy_image_path'/);
  const gone = ['add', '--install-parameters', 'cdrom_image_path=/no/cd.iso', 'a.example.com'];
  assertRefused(await lab.run('gnt-instance', gone), 2, 'HOST_PREREQUISITE', /\/no\/cd\.iso/);
  assert.equal(await instanceNames(), '');
});

test('refuses a name that is taken, and keeps the first instance', async () => {
  const image = join(lab.paths.root, 'empty.img');
  await writeFile(image, Buffer.alloc(1024 * 1024));
  const add = ['add', '--os-image', image, '--no-install', '-s', '8M', 'taken.example.com'];
  assert.equal((await lab.run('gnt-instance', add)).status, 0);
  assertRefused(await lab.run('gnt-instance', add), 2, 'INSTANCE_EXISTS', /taken\.example\.com/);
  assert.equal(await instanceNames(), 'taken.example.com');
  const info = await lab.run('gnt-instance', ['info', 'taken.example.com']);
  assert.match(info.stdout, /not installed/);
  assert.equal(
    (await lab.run('gnt-instance', ['remove', '--force', 'taken.example.com'])).status,
    0,
  );
  assert.equal(await instanceNames(), '');
  assert.deepEqual(await readdir(lab.paths.disksDir), []);
});

test('fails an install whose download is cut short, and starts nothing', async () => {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-length': 1024 * 1024 });
    response.write(Buffer.alloc(1000));
    setTimeout(() => response.destroy(), 50);
  });
  const port = await listenOnLoopback(server);
  try {
    const url = `http://127.0.0.1:${port}/cut.img`;
    const result = await lab.run('gnt-instance', [
      'add',
      '--os-image',
      url,
      '-s',
      '8M',
      'cut.example.com',
    ]);
    assertRefused(result, 1, 'DOWNLOAD_TRUNCATED', /cut\.img/);
    assert.match(result.stderr, /fetch-image/);
    const info = await lab.run('gnt-instance', ['info', 'cut.example.com']);
    assert.match(info.stdout, /install_failed/);
    assert.match(info.stdout, /fetch-image/);
    const start = await lab.run('gnt-instance', ['startup', 'cut.example.com']);
    assertRefused(start, 2, 'INSTANCE_STATE', /cut\.example\.com/);
    assert.equal(
      (await lab.run('gnt-instance', ['remove', '--force', 'cut.example.com'])).status,
      0,
    );
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test('fails an install whose checksum differs before the disk is touched', async () => {
  const image = join(lab.paths.root, 'sum.img');
  await writeFile(image, Buffer.alloc(1024 * 1024, 7));
  const result = await lab.run('gnt-instance', [
    'add', '--os-image', image, '--os-image-checksum', `sha256:${'0'.repeat(64)}`, '-s', '8M', 'sum.example.com',
  ]); // prettier-ignore
  assertRefused(result, 1, 'IMAGE_CHECKSUM_MISMATCH', /0{64}/);
  assert.deepEqual(await readdir(lab.paths.disksDir), [], 'a disk was made');
  assert.equal((await lab.run('gnt-instance', ['remove', '--force', 'sum.example.com'])).status, 0);
});

test('an archive of other bytes than its BootEnv says is opened by no machine', async () => {
  const [archive, document] = ['d.iso', 'd.json'].map((name) => join(lab.paths.root, name));
  assert.ok(archive && document);
  await writeFile(archive, 'not the one');
  const amd64 = { IsoFile: 'd.iso', Sha256: '0'.repeat(64), Kernel: 'linux' };
  const OS = { Name: 'debian-12', SupportedArchitectures: { amd64 } };
  await writeFile(document, JSON.stringify({ Name: 'other-bytes', OS }));
  assert.equal((await lab.run('gnt-bootenv', ['create', document])).status, 0);
  const result = await lab.run('gnt-bootenv', ['uploadiso', 'other-bytes', archive]);
  assertRefused(result, 1, 'IMAGE_CHECKSUM_MISMATCH', /0{64}/);
  assert.equal((await lab.run('gnt-bootenv', ['listisos', '--no-headers'])).stdout, '');
  assert.equal((await lab.run('gnt-bootenv', ['destroy', 'other-bytes'])).status, 0);
});

test('a reinstallation whose checksum differs leaves the disk as it is', async () => {
  const name = 'again.example.com';
  const image = join(lab.paths.root, 'again.img');
  await writeFile(image, Buffer.alloc(1024 * 1024, 7));
  const added = await lab.run('gnt-instance', [
    'add', '--no-install', '--no-start', '--os-image', image, '-s', '8M', name,
  ]); // prettier-ignore
  assert.equal(added.status, 0, added.stderr);
  const found = await readdir(lab.paths.disksDir, { recursive: true, withFileTypes: true });
  const disk = found.find((entry) => entry.isFile());
  assert.ok(disk);
  const path = join(disk.parentPath, disk.name);
  const before = Buffer.alloc(8 * 1024 * 1024, 9);
  await writeFile(path, before);
  const result = await lab.run('gnt-instance', [
    'reinstall', '--force', '--os-image', image, '--os-image-checksum', `sha256:${'0'.repeat(64)}`, name,
  ]); // prettier-ignore
  assertRefused(result, 1, 'IMAGE_CHECKSUM_MISMATCH', /0{64}/);
  assert.ok(before.equals(await readFile(path)), 'the disk was written');
  assert.equal((await lab.run('gnt-instance', ['remove', '--force', name])).status, 0);
});

test('a login in a URL is in no file, neither where it is taken nor where it is refused', async () => {
  const password = randomBytes(20).toString('hex');
  const login = `joe:${password}`;
  const ask = async (...args: string[]): Promise<ProgramResult> => {
    const result = await lab.run('gnt-instance', args);
    assert.doesNotMatch(result.stdout + result.stderr, new RegExp(password));
    return result;
  };
  const submit = async (opcode: object): Promise<number> => {
    const answer = await askSocket(lab.paths.nodedSocket, '/v1/jobs', {
      method: 'POST',
      body: opcode,
    });
    assert.doesNotMatch(answer.body, new RegExp(password));
    return answer.status;
  };
  const name = 'login.example.com';
  const add = ['add', '--no-install', '-s', '8M', '--os-image', join(lab.paths.root, 'empty.img')];
  const url = `http://${login}@127.0.0.1:9/x.tgz`;
  const added = await ask(...add, '--personalization-package', url, name);
  assert.equal(added.status, 0, added.stderr);
  assert.match((await ask('info', name)).stdout, /http:\/\/127\.0\.0\.1:9\/x\.tgz/);
  const changed = await ask('modify', '--personalization-package', url, name);
  assertRefused(changed, 2, 'VALIDATION', /--personalization-user/);
  const image = `http://${login}@127.0.0.1:9/x.raw`;
  assertRefused(await ask('reinstall', '-f', '--os-image', image, name), 2, 'VALIDATION', /netrc/);
  const create = { opcode: 'INSTANCE_CREATE', name: 'other.example.com', install: false };
  for (const source of [image, ` ${image}`, `sftp+${image}`])
    assert.equal(await submit({ ...create, osImage: source }), 400);
  assert.equal(await submit({ ...create, hvparams: { kernel_path: image } }), 400);
  const both = { ...create, osImage: join(lab.paths.root, 'empty.img') };
  assert.equal(await submit({ ...both, personalizationPackage: url }), 202);
  assert.deepEqual(await findSecret(password, lab.paths.root, () => false), []);
});

test('says with status 3 that the daemon is not there, and how to start it', async () => {
  const other = await createLab('gnt-nobody');
  try {
    await mkdir(other.paths.runDir, { recursive: true });
    assertRefused(
      await other.run('gnt-instance', ['list']),
      3,
      'NODED_UNREACHABLE',
      /hint: .*gnt-noded/,
    );
  } finally {
    await other.dispose();
  }
});
