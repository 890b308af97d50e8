import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { access, mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { createLab, type Lab, type ProgramResult } from '../../scripts/demo/lab.ts';
import { addDefinitions } from './support/definitions.ts';
import { endLab } from './support/end-lab.ts';
import { infoOf, must } from './support/ask-nodes.ts';
import { firstDiskOf, readOnDisk } from './support/installed.ts';
import { run } from '#shared/process/run.ts';

/**
 * Other ways to install than an image and an untrusted script: on both sides at once, on the host,
 * forced into the appliance, later, and again.
 */
let lab: Lab;
let osDir: string;
const NAME = 'modes.example.com';
const SECRET = `secret-${randomBytes(8).toString('hex')}`;
const LEAK = 'GNT_TEST_OF_THE_HOST';

before(async () => {
  process.env[LEAK] = 'leaked';
  lab = await createLab('gnt-modes');
  osDir = lab.paths.osSearchPath[0] ?? '';
  await addDefinitions(lab, 'hello', 'two-worlds');
  await writeFile(join(lab.paths.root, 'secret'), SECRET, { mode: 0o600 });
  await lab.startNode();
});

after(async () => {
  delete process.env[LEAK];
  await endLab(lab);
});

// A failed assertion must not fail the tests after it.
afterEach(async () => {
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', NAME]);
});

async function add(...options: string[]): Promise<ProgramResult> {
  return lab.run('gnt-instance', ['add', '--no-start', ...options, NAME]);
}

async function reinstall(...options: string[]): Promise<ProgramResult> {
  return lab.run('gnt-instance', ['reinstall', '--force', '--no-start', ...options, NAME]);
}

function assertRefused(result: ProgramResult, code: string, text: RegExp): void {
  assert.equal(result.status, 2, result.stderr);
  assert.match(result.stderr, new RegExp(`^error\\[${code}\\]: `, 'm'));
  assert.match(result.stderr, text);
}

test('runs the trusted script on the host and the untrusted one in the appliance at once, and they talk', async () => {
  await must(lab.run('gnt-os', ['modify', '--trusted', 'yes', 'two-worlds']));
  await must(add('-o', 'two-worlds', '-s', '8M'));
  const log = await must(lab.run('gnt-instance', ['log', NAME]));
  // Each side waits for an answer of the other one.
  assert.match(log, /^host heard: which licence\?$/m);
  assert.match(log, new RegExp(`^appliance heard: a licence for ${NAME}$`, 'm'));
  assert.match(log, /^host heard: thank you$/m);
});

test("runs a top-level script on the host only when it is trusted, with Ganeti's environment and nothing else", async () => {
  const dir = join(osDir, 'bare');
  await mkdir(dir);
  await writeFile(join(dir, 'ganeti_api_version'), '20\n');
  await writeFile(join(dir, 'parameters.list'), 'colour of it\nplace of it\napi-key of it\n');
  // The environment at the start of the script, because a shell adds variables. The script runs in
  // a copy of its folder, which is removed afterwards.
  const environ = join(lab.paths.root, 'environ');
  const script = `#!/bin/sh\necho ran on the host with $OSP_API_KEY\ncp /proc/$$/environ '${environ}'\n`;
  for (const name of ['create', 'import', 'export', 'rename', 'verify'])
    await writeFile(join(dir, name), name === 'create' ? script : '#!/bin/sh\n', { mode: 0o755 });
  const options = [
    '-o', 'bare', '-s', '8M', '-O', 'colour=blue', '--os-parameters-private', 'place=attic',
    '--os-parameters-secret', `api-key=@${join(lab.paths.root, 'secret')}`, '--disk', '0:size=8M,name=root',
    '-B', 'memory=256,vcpus=2', '--net', '0:mac=02:00:00:12:34:56,mode=user',
  ].filter((word, index, all) => word !== '-s' && all[index - 1] !== '-s'); // prettier-ignore

  assertRefused(
    await add(...options),
    'OS_NOT_TRUSTED',
    /hint: .*gnt-os modify --trusted yes bare/,
  );
  assert.equal((await lab.run('gnt-instance', ['info', NAME])).status, 2);
  await must(lab.run('gnt-os', ['modify', '--trusted', 'yes', 'bare']));
  await must(add(...options));

  const text = await readFile(environ, 'utf8');
  const actual = Object.fromEntries(
    text
      .split('\0')
      .filter(Boolean)
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
  const shown = await infoOf(lab, NAME);
  const [disk] = shown.disks;
  const [nic] = shown.nics;
  const { PATH: path, INSTANCE_CTIME: created, INSTANCE_MTIME: modified, ...rest } = actual;
  assert.match(path ?? '', /^\/[^:]+:\/sbin:\/bin:\/usr\/sbin:\/usr\/bin$/);
  assert.match(created ?? '', /^\d+\.\d+$/);
  assert.match(modified ?? '', /^\d+\.\d+$/);
  assert.deepEqual(rest, {
    OS_API_VERSION: '20',
    OS_NAME: 'bare',
    OS_VARIANT: '',
    DEBUG_LEVEL: '0',
    INSTANCE_NAME: NAME,
    INSTANCE_OS: 'bare',
    INSTANCE_UUID: shown.uuid,
    INSTANCE_PRIMARY_NODE: 'node1.example.com',
    INSTANCE_SECONDARY_NODES: '',
    INSTANCE_BE_memory: '256',
    INSTANCE_BE_vcpus: '2',
    INSTANCE_HV_serial_console: 'True',
    HYPERVISOR: 'kvm',
    DISK_COUNT: '1',
    DISK_0_PATH: await firstDiskOf(lab, NAME),
    DISK_0_ACCESS: 'rw',
    DISK_0_SIZE: '8',
    DISK_0_UUID: disk?.uuid,
    DISK_0_NAME: 'root',
    DISK_0_FRONTEND_TYPE: 'paravirtual',
    DISK_0_BACKEND_TYPE: 'file:loop',
    NIC_COUNT: '1',
    NIC_0_MAC: '02:00:00:12:34:56',
    NIC_0_UUID: nic?.uuid,
    NIC_0_MODE: 'user',
    NIC_0_FRONTEND_TYPE: 'paravirtual',
    OSP_COLOUR: 'blue',
    OSP_PLACE: 'attic',
    OSP_API_KEY: SECRET,
  });
  const log = await must(lab.run('gnt-instance', ['log', NAME]));
  assert.match(log, /^ran on the host with (?!secret-)/m);
  await rm(environ);

  await must(
    reinstall(
      '--enable-safe-install=no',
      '--os-parameters-secret',
      `api-key=@${join(lab.paths.root, 'secret')}`,
    ),
  );
  assert.match(await readFile(environ, 'utf8'), /\0INSTANCE_REINSTALL=1\0/);
  assert.deepEqual([shown.safeInstall, (await infoOf(lab, NAME)).safeInstall], [true, false]);
});

test('refuses safe-install=no with untrusted scripts, and trusted scripts where the cluster forbids them', async () => {
  const twoWorlds = ['-o', 'two-worlds', '-s', '8M', '--dry-run'];
  await must(add(...twoWorlds));
  const unsafe = await add(...twoWorlds, '--enable-safe-install=no');
  assertRefused(unsafe, 'VALIDATION', /two-worlds[^]*hint: /);
  await must(lab.run('gnt-cluster', ['modify', '--host-scripts', 'no']));
  const forbidden = await add('-o', 'bare', '-s', '8M');
  await must(lab.run('gnt-cluster', ['modify', '--host-scripts', 'yes']));
  assertRefused(forbidden, 'OS_NOT_TRUSTED', /hint: .*gnt-cluster modify --host-scripts yes/);
  assert.equal((await lab.run('gnt-instance', ['info', NAME])).status, 2);
});

test('forces a definition for the host into the appliance, with its environment, though nobody trusts it', async () => {
  const dir = join(osDir, 'classic');
  await mkdir(dir);
  await writeFile(join(dir, 'ganeti_api_version'), '20\n');
  await writeFile(join(dir, 'parameters.list'), 'colour of it\n');
  const marker = join(lab.paths.root, 'ran-on-the-host');
  const scripts = {
    create: `touch ${marker}; . ./common; { cat /proc/$$/environ | tr '\\0' '\\n'; } | dd of="$DISK_0_PATH" conv=notrunc`,
    verify: `touch ${marker}; [ "$1:$OSP_COLOUR" = parameters:blue ] || exit 1; echo it is blue`,
  };
  for (const name of ['create', 'import', 'export', 'rename', 'verify'])
    await writeFile(
      join(dir, name),
      `#!/bin/sh\n${Object.entries(scripts).find(([each]) => each === name)?.[1] ?? ''}\n`,
      { mode: 0o755 },
    );
  await writeFile(join(dir, 'common'), 'echo common is read\n');
  assertRefused(await add('-o', 'classic', '-s', '8M'), 'OS_NOT_TRUSTED', /classic/);
  await must(lab.run('gnt-os', ['modify', '--safe-install', 'required', 'classic']));
  await must(add('-o', 'classic', '-s', '8M', '-O', 'colour=blue'));

  await using disk = await open(await firstDiskOf(lab, NAME));
  const { buffer } = await disk.read(Buffer.alloc(4096), 0, 4096, 0);
  const environment = buffer.toString('utf8').replace(/\0+$/, '');
  for (const line of [
    ...['OS_NAME=classic', 'OSP_COLOUR=blue', `INSTANCE_NAME=${NAME}`, 'DISK_0_BACKEND_TYPE=block'],
    ...['DISK_0_PATH=/dev/disk/by-id/virtio-disk0', 'INSTANCE_OS=classic'],
  ])
    assert.match(environment, new RegExp(`^${line}$`, 'm'));
  const log = await must(lab.run('gnt-instance', ['log', NAME]));
  assert.match(log, /^it is blue$[^]*^common is read$/m);
  await assert.rejects(access(marker));
});

test('makes disks now and installs later, from each format, with merged parameters and secrets given again', async () => {
  const images = await makeImages();
  // The operator distrusts this definition: only its untrusted script may run.
  const onHost = join(lab.paths.root, 'ran-on-the-host');
  await writeFile(join(osDir, 'hello/create'), `#!/bin/sh\ntouch ${onHost}\n`, { mode: 0o755 });
  await must(lab.run('gnt-os', ['modify', '--trusted', 'no', 'hello']));
  const secret = ['--os-parameters-secret', `api-key=@${join(lab.paths.root, 'secret')}`];
  await must(
    add(
      '--no-install', '--os-image', images.qcow2, '-o', 'hello', '-s', '32M', '-O', 'greeting=Hi',
      '--os-parameters-private', 'owner=the janitor', ...secret,
    ), // prettier-ignore
  );
  const created = await infoOf(lab, NAME);
  assert.equal(created.installState, 'created');
  assert.equal(created.running, null);

  assertRefused(await reinstall(), 'SECRETS_NEEDED', /api-key/);
  assert.equal((await infoOf(lab, NAME)).instanceId, created.instanceId);

  await must(reinstall('-O', 'greeting=Good evening', ...secret));
  const installed = await infoOf(lab, NAME);
  assert.equal(installed.installState, 'installed');
  assert.equal(installed.uuid, created.uuid);
  assert.notEqual(installed.instanceId, created.instanceId);
  assert.match(await readOnDisk(lab, NAME, '/made-for'), /^qcow2$/m);
  assert.match(await readOnDisk(lab, NAME, '/etc/motd'), /^Good evening, from/);
  assert.equal(await readOnDisk(lab, NAME, '/etc/gnt-owner'), 'the janitor');
  assert.equal(await readOnDisk(lab, NAME, '/etc/gnt-api-key'), SECRET);

  for (const [format, algorithm] of [
    ['zst', 'sha256'],
    ['xz', 'sha512'],
  ] as const) {
    const digest = createHash(algorithm)
      .update(await readFile(images[format]))
      .digest('hex');
    const checksum = `${algorithm}:${digest}`;
    await must(reinstall('--os-image', images[format], '--os-image-checksum', checksum, ...secret));
    assert.match(await readOnDisk(lab, NAME, '/made-for'), new RegExp(`^${format}$`, 'm'));
    assert.match(await readOnDisk(lab, NAME, '/etc/motd'), /^Good evening, from/);
  }
  await assert.rejects(access(onHost));
});

/** Makes one small file system per format, each with a file that names the format. */
async function makeImages(): Promise<Record<'qcow2' | 'zst' | 'xz', string>> {
  const { root } = lab.paths;
  const make = async (format: string): Promise<string> => {
    const content = join(root, `content-${format}`);
    await mkdir(content);
    await writeFile(join(content, 'made-for'), `${format}\n`);
    await writeFile(join(content, 'noise'), randomBytes(1024 * 1024));
    const image = join(root, `${format}.raw`);
    await run('mke2fs', ['-q', '-t', 'ext4', '-d', content, image, '16M']);
    return image;
  };
  const qcow2 = join(root, 'image.qcow2');
  await run('qemu-img', ['convert', '-c', '-O', 'qcow2', await make('qcow2'), qcow2]);
  const zst = await make('zst');
  await run('zstd', ['-q', '--rm', zst]);
  const xz = await make('xz');
  await run('xz', ['-1', xz]);
  return { qcow2, zst: `${zst}.zst`, xz: `${xz}.xz` };
}
