import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { createLab, type Lab, type ProgramResult } from '../../scripts/demo/lab.ts';
import { addDefinitions } from './support/definitions.ts';
import { endLab } from './support/end-lab.ts';
import { infoOf, must } from './support/ask-nodes.ts';
import { firstDiskOf, readOnDisk } from './support/installed.ts';
import { run } from '#shared/process/run.ts';
import { listenOnLoopback } from '../lab/listen-on-loopback.ts';
import { makeBootCdrom } from './support/boot-cdrom.ts';
import { makeTinyLinux, TINY_INIT } from '../lab/tiny-linux.ts';

/** Instances that install from a medium, and a personalization package afterwards. */
let lab: Lab;
const NAME = 'media.example.com';

before(async () => {
  lab = await createLab('gnt-media');
  await addDefinitions(lab, 'hello');
  // The medium uses its kernel and its busybox.
  await must(lab.run('gnt-appliance', ['build']));
  await lab.startNode();
});

after(() => endLab(lab));

// A failed assertion must not fail the tests after it.
afterEach(async () => {
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', NAME]);
});

function reinstall(...options: string[]): Promise<ProgramResult> {
  return lab.run('gnt-instance', ['reinstall', '--force', '--no-start', ...options, NAME]);
}

/**
 * The init of a medium. It writes a system with its metadata to the disk, reports success unless it
 * must be mute, and powers off.
 */
const MEDIUM_INIT = `${TINY_INIT}at=http://169.254.169.254/ganeti/latest
$b ip link set lo up
$b ip link set eth0 up
$b udhcpc -i eth0 -f -q -n -t 60 -T 1 -s /lease
$b dd if=/system.img of=/dev/vda conv=fsync
$b mkdir /mnt
$b mount -t ext4 /dev/vda /mnt
{ $b cat /proc/cmdline; $b wget -q -O - $at/meta_data.json; } >/mnt/report
$b umount /mnt
$b grep -q mute /proc/cmdline || $b wget -q -O - --post-data '[{"type":"result","atMs":1,"outcome":{"status":"success"}}]' $at/install/events
$b poweroff -f
`;

/** @returns kernel and initramfs, as installation parameters */
async function makeMedium(): Promise<string> {
  const system = join(lab.paths.root, 'system.img');
  await run('mke2fs', ['-q', '-t', 'ext4', system, '4M']);
  const { kernel, initrd } = await makeTinyLinux(lab, 'medium.img', MEDIUM_INIT, [
    { path: 'system.img', mode: 0o644, data: await readFile(system) },
  ]);
  return `kernel_path=${kernel},initrd_path=${initrd}`;
}

async function makePackage(): Promise<string> {
  const content = join(lab.paths.root, 'content');
  await mkdir(join(content, 'etc'), { recursive: true });
  await writeFile(join(content, 'etc/gnt-owner'), 'the package');
  const path = join(lab.paths.root, 'personal.tar.gz');
  await run('tar', ['-C', content, '-czf', path, '.']);
  return path;
}

test('a kernel and an initramfs install, then scripts and the package are laid over it; its word is success, its silence none', async () => {
  const medium = await makeMedium();
  await must(
    lab.run('gnt-instance', [
      'add', '-s', '8M', '-B', 'memory=256', '-C', 'yes', '-o', 'hello', '-O', 'greeting=Hi',
      '--os-parameters-private', 'owner=the script', '--personalization-package', await makePackage(),
      '--install-parameters', `${medium},kernel_args=console=ttyS0 run=first`, NAME,
    ]),
  ); // prettier-ignore
  const shown = await infoOf(lab, NAME);
  assert.deepEqual([shown.installState, shown.status], ['installed', 'running']);
  const command = await readFile(`/proc/${shown.running?.pid ?? 0}/cmdline`, 'utf8');
  assert.doesNotMatch(command, /-kernel|run=first/);
  assert.match(
    await must(lab.run('gnt-instance', ['metadata', NAME, 'ganeti/latest/meta_data.json'])),
    /"mode": ?"run"/,
  );
  await must(lab.run('gnt-instance', ['shutdown', '--timeout=0', NAME]));
  assert.match(await readOnDisk(lab, NAME, '/report'), /run=first\n[^]*"mode": ?"install"/);
  assert.match(await readOnDisk(lab, NAME, '/etc/motd'), /^Hi, from media/);
  assert.equal(await readOnDisk(lab, NAME, '/etc/gnt-owner'), 'the package');
  const stages = shown.install?.stages.map(({ stage }) => stage) ?? [];
  const order = [
    'create-disks',
    'medium',
    'os-scripts',
    'personalize',
    'shutdown-appliance',
  ] as const;
  assert.deepEqual(
    stages.filter((stage) => order.some((each) => each === stage)),
    order,
  );

  const mute = ['--install-parameters', 'kernel_args=console=ttyS0 run=second mute'];
  const silent = await reinstall(...mute);
  assert.equal(silent.status, 1, silent.stderr);
  assert.match(silent.stderr, /^error\[APPLIANCE_NO_RESULT\]: .*powered off without reporting/m);
  assert.match(silent.stderr, /^hint: .*--medium-success=poweroff/m);
  assert.match(
    await readOnDisk(lab, NAME, '/report'),
    /run=first\n/,
    'the old disk is what it was',
  );

  const alone = ['-o', 'none', '--personalization-package', 'none'];
  await must(reinstall(...mute, ...alone, '--medium-success=poweroff'));
  assert.match(await readOnDisk(lab, NAME, '/report'), /run=second mute\n/);
  assert.equal(await readOnDisk(lab, NAME, '/etc/motd'), '');
  const { mediumSuccess, install } = await infoOf(lab, NAME);
  assert.equal(mediumSuccess, 'poweroff');
  assert.ok(install?.stages.every(({ stage }) => stage !== 'boot-appliance'));
});

test('a cdrom installs from a path, and from a URL through the cache for images', async () => {
  const text = `from the cdrom ${randomBytes(8).toString('hex')}`;
  const disc = join(lab.paths.root, 'installer.iso');
  await writeFile(disc, makeBootCdrom(text));
  const readSector = async (): Promise<string> => {
    await using disk = await open(await firstDiskOf(lab, NAME));
    const { buffer } = await disk.read(Buffer.alloc(512), 0, 512, 0);
    return buffer.toString('latin1').replace(/\0+$/, '');
  };
  const common = ['-s', '8M', '-B', 'memory=64', '--medium-success=poweroff', '--no-start'];
  const byPath = ['--install-parameters', `cdrom_image_path=${disc}`];
  await must(lab.run('gnt-instance', ['add', ...common, ...byPath, NAME]));
  assert.equal(await readSector(), text);

  let requests = 0;
  const other = `${text}, served`;
  const server = createServer((_, response) => {
    requests += 1;
    response.end(makeBootCdrom(other));
  });
  const port = await listenOnLoopback(server);
  try {
    const url = `http://127.0.0.1:${port}/installer.iso`;
    await must(reinstall('--install-parameters', `cdrom_image_path=${url}`));
    assert.equal(await readSector(), other);
    assert.ok(requests > 0);
    assert.ok(
      (await infoOf(lab, NAME)).install?.stages.some(({ stage }) => stage === 'fetch-image'),
    );
  } finally {
    server.close();
    server.closeAllConnections();
  }
  const gone = await reinstall();
  assert.match(gone.stderr, /^error\[DOWNLOAD_FAILED\]: /m);
  assert.equal(await readSector(), other, 'a medium that cannot be had leaves the old disk');
});
