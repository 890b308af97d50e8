import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readFile, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { run } from '#shared/process/run.ts';
import type { ProgramResult } from '../../scripts/demo/lab.ts';
import { addDefinitions } from './support/definitions.ts';
import { endLab } from './support/end-lab.ts';
import { createVictim, SCRIPT_MS, type Victim, VICTIM, writeOs } from './support/victim.ts';

/**
 * Failures of an installation in the appliance: their messages, and that nothing remains. Other
 * files have kills (install-kills.long.test.ts), scripts that fail and packages
 * (reinstall.vm.test.ts).
 */
let victim: Victim;
/** The first one in which a script starts is long enough for this host. */
const INSTALL_TIMEOUTS_S = [40, 120];

before(async () => {
  victim = await createVictim('gnt-fail');
  const { lab } = victim;
  await addDefinitions(lab, 'keeper');
  for (const [name, key] of Object.entries({ 'switch-off': 'o', reset: 'b' }))
    await writeOs(lab, name, endsMachine(key));
  const hooks = join(lab.paths.root, 'own-hooks');
  await mkdir(hooks);
  await writeFile(
    join(hooks, '10-own.yaml'),
    'stages: {install.pre: [{commands: [echo of the appliance]}]}',
  );
  const built = await lab.run('gnt-appliance', ['build', '--hooks', hooks]);
  assert.equal(built.status, 0, built.stderr);
  // The node creates it again at its start.
  await rm(lab.paths.applianceDir, { recursive: true });
  await lab.startNode();
});
after(() => endLab(victim.lab));
/** Later tests use an installation that succeeded. */
let isKept = false;
afterEach(async () => {
  if (!isKept) await victim.clear();
});

/**
 * Returns a script that writes to the disk, reports success, and ends the machine with a sysrq key.
 */
function endsMachine(key: string): string {
  return `#!/bin/sh
head -c 65536 /dev/urandom | dd of="$DISK_0_PATH" conv=fsync,notrunc 2>/dev/null
curl -s -H 'content-type: application/json' http://169.254.169.254/ganeti/latest/install/events \\
  -d '[{"type":"result","atMs":9000,"outcome":{"status":"success"}}]'
echo the end
sleep 3
echo 1 >/proc/sys/kernel/sysrq
echo ${key} >/proc/sysrq-trigger
sleep ${SCRIPT_MS / 1000}
`;
}

test('installs a small image with a script, so that the failures below are not for another reason', async () => {
  const result = await victim.add('--os-image', victim.image, '-o', 'hello', '-s', '32M');
  assert.equal(result.status, 0, result.stderr);
  const shown = await victim.info();
  assert.equal(shown.installState, 'installed');
  const stages = shown.install?.stages.map(({ stage }) => stage);
  assert.deepEqual(
    ['boot-appliance', 'image', 'os-scripts', 'shutdown-appliance'].filter(
      (stage) => !stages?.some((done) => done === stage),
    ),
    [],
  );
  assert.match(
    (await victim.lab.run('gnt-instance', ['log', VICTIM])).stdout,
    /^of the appliance$/m,
  );
  assert.match(
    (await victim.lab.run('gnt-appliance', ['info'])).stdout,
    /^Hook: 10-own\.yaml, SHA-256 /m,
  );
  isKept = true;
});

test('a script that ends the machine fails, whatever it said, and leaves what was installed', async () => {
  const disks = await victim.digestDisks();
  for (const [os, code] of [
    ['switch-off', 'APPLIANCE_NO_RESULT'],
    ['reset', 'APPLIANCE_CRASHED'],
  ] as const) {
    const ended = await victim.reinstall('-o', os);
    assert.equal(ended.status, 1, ended.stderr);
    assert.match(ended.stderr, new RegExp(`^error\\[${code}\\]: `, 'm'));
    assert.match((await victim.lab.run('gnt-instance', ['log', VICTIM])).stdout, /^the end$/m);
    assert.deepEqual(await victim.digestDisks(), disks);
    assert.equal((await victim.info()).installState, 'installed');
  }
});

test('leaves an instance as it was when a look at an image or a script finds that a reinstallation is bad', async () => {
  const { image, lab } = victim;
  const [wide, backed] = ['wide.qcow2', 'backed.qcow2'].map((name) => join(lab.paths.root, name));
  assert.ok(wide && backed);
  await run('qemu-img', ['create', '-q', '-f', 'qcow2', wide, '1G']);
  await run('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', image, backed]);
  const snapshot = async (): Promise<unknown> => {
    const record = { ...(await victim.info()), modifiedAtMs: 0, serialNo: 0 };
    return { record, disks: await victim.digestDisks() };
  };
  const before = await snapshot();
  // reinstall.vm.test.ts has a package, and a script that fails during a package.
  for (const [code, stage, ...args] of [
    ['IMAGE_TOO_LARGE', 'image', '--os-image', wide],
    ['IMAGE_BACKING_FILE', 'image', '--no-keep-old', '--os-image', backed],
    ['SCRIPT_FAILED', 'verify', '--no-keep-old', '-o', 'keeper', '-O', 'colour=black'],
  ] as const) {
    const result = await victim.reinstall(...args);
    assert.match(result.stderr, new RegExp(`^error\\[${code}\\]: .*\\(stage ${stage}\\)$`, 'm'));
    assert.deepEqual(await snapshot(), before, `${args.join(' ')}: ${result.stderr}`);
  }
  isKept = false;
  await victim.remove();
});

test('refuses an image larger than the disk before the first byte is written, with both sizes', async () => {
  const result = await victim.add('--os-image', victim.image, '-s', '8M');
  const [[name, digest] = [], ...others] = await victim.digestDisks();
  assert.deepEqual([name, others], ['disk0.raw', []]);
  const zeros = createHash('sha256').update(Buffer.alloc(8 * 1024 ** 2));
  assert.equal(digest, zeros.digest('hex'), 'something was written');
  await victim.assertFailedAndRemove(
    result,
    'IMAGE_TOO_LARGE',
    'image',
    /25165824[^]*8388608|8388608[^]*25165824/,
  );
});

test('ends an appliance that takes longer than the install timeout, and says at which stage', async () => {
  const install = async (timeoutS: number): Promise<ProgramResult> => {
    await victim.lab.run('gnt-cluster', ['modify', '--install-timeout', String(timeoutS)]);
    return victim.add('--os-image', victim.image, '-o', 'sleeper', '-s', '32M');
  };
  try {
    for (const timeoutS of INSTALL_TIMEOUTS_S) {
      const result = await install(timeoutS);
      const { stdout: log } = await victim.lab.run('gnt-instance', ['log', VICTIM]);
      const hasBegun = /^sleeping$/m.test(log);
      const text = new RegExp(`did not end within ${timeoutS} s`);
      const stage = hasBegun ? 'os-scripts' : undefined;
      await victim.assertFailedAndRemove(result, 'INSTALL_TIMEOUT', stage, text);
      if (hasBegun) return;
    }
    assert.fail('no script began in time');
  } finally {
    await victim.lab.run('gnt-cluster', ['modify', '--install-timeout', '0']);
  }
});

test('says that the host is full, gives back what was half written, and installs again when there is room', async () => {
  await victim.lab.stopNode();
  // The store, the disks and the appliance are on one small file system.
  const { stateDir } = victim.lab.paths;
  await run('mount', ['-t', 'tmpfs', '-o', 'size=2g,mode=0755', 'gnt-small', stateDir]);
  try {
    await victim.lab.startNode();
    assert.equal((await victim.lab.run('gnt-appliance', ['build'])).status, 0);
    const { bsize, blocks, bavail } = await statfs(stateDir);
    const usedMiB = Math.ceil(((blocks - bavail) * bsize) / 1024 ** 2);
    await run('mount', ['-o', `remount,size=${usedMiB + 80}m`, stateDir]);
    const large = join(victim.lab.paths.root, 'large.img');
    await writeFile(large, randomBytes(128 * 1024 ** 2));
    const result = await victim.add('--os-image', large, '--image-format', 'raw', '-s', '128M');
    assert.equal(result.status, 1, result.stderr);
    assert.match(result.stderr, /^error\[DISK_FULL\]: /m);
    assert.match(result.stderr, /^hint: Free space below/m);
    const shown = await victim.info();
    assert.deepEqual([shown.status, shown.install?.stage], ['install_failed', 'image']);
    const { bavail: freeBlocks } = await statfs(stateDir);
    assert.ok(freeBlocks * bsize > 64 * 1024 ** 2, 'what was half written is still there');
    await run('mount', ['-o', 'remount,size=2g', stateDir]);
    const again = await victim.reinstall();
    assert.equal(again.status, 0, again.stderr);
    await victim.remove();
  } finally {
    await victim.lab.stopNode();
    await run('umount', [stateDir]);
    await victim.lab.startNode();
  }
});

test('ends an appliance that does not say a word, after a second try', async () => {
  await victim.lab.stopNode();
  // No machine boots that fast under emulation.
  await victim.lab.startNode('--appliance-boot-timeout', '1');
  const result = await victim.add(
    '--os-image',
    victim.image,
    '-o',
    'hello',
    '-s',
    '32M',
    '-H',
    'kvm:accel=tcg',
  );
  assert.match(
    result.stderr,
    /did not report within 1 s; nothing was written yet: booting the appliance once more/,
  );
  await victim.assertFailedAndRemove(
    result,
    'APPLIANCE_NO_RESULT',
    'boot-appliance',
    /--appliance-boot-timeout/,
  );
  await victim.lab.stopNode();
  await victim.lab.startNode();
});

test('builds or refuses, but never boots, an appliance whose bytes were changed', async () => {
  const root = join(victim.lab.paths.applianceDir, 'manifest.json');
  const manifest = await readFile(root, 'utf8');
  await rm(root);
  await writeFile(
    root,
    manifest.replace(
      /"sha256": ?"[0-9a-f]/,
      (match) => `${match.slice(0, -1)}${match.endsWith('0') ? '1' : '0'}`,
    ),
  );
  const doctor = await victim.lab.run('gnt-node', ['doctor']);
  assert.equal(doctor.status, 0);
  assert.match(doctor.stdout, /differs from its manifest/);
  const result = await victim.add('--os-image', victim.image, '-s', '32M');
  assert.equal(result.status, 0, result.stderr);
  await victim.remove();
});
