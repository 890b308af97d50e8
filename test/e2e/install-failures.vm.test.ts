import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { nodeInfo } from '#shared/contract/api.ts';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { jobRecord } from '#shared/contract/job.ts';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab, type ProgramResult } from '../../scripts/demo/lab.ts';
import { askSocket } from '../lab/ask-socket.ts';

/**
 * Every way in which an installation inside the appliance can fail: what it says, and that nothing
 * is left of it.
 */
let lab: Lab;
let image: string;
const NAME = 'victim.example.com';
/** How long a script sleeps that must not come to its end. */
const SCRIPT_MS = 600_000;
/** The first one in which a script begins is long enough for this host. */
const INSTALL_TIMEOUTS_S = [12, 40, 120];

before(async () => {
  lab = await createLab('gnt-fail');
  image = join(lab.paths.root, 'small.img');
  // A whole-disk ext4: enough for scripts and packages to mount.
  await run('mke2fs', ['-q', '-t', 'ext4', '-d', '/etc/apt', image, '24M']);
  const [osDir = ''] = lab.paths.osSearchPath;
  await mkdir(osDir, { recursive: true });
  for (const name of ['hello', 'failing']) {
    await cp(join(import.meta.dirname, '../../fixtures/os', name), join(osDir, name), {
      recursive: true,
    });
  }
  await writeOs(
    join(osDir, 'sleeper'),
    `#!/bin/sh\necho sleeping\nexec sleep ${SCRIPT_MS / 1000}\n`,
  );
  for (const [name, key] of Object.entries({ 'switch-off': 'o', reset: 'b' }))
    await writeOs(join(osDir, name), endsMachine(key));
  const hooks = join(lab.paths.root, 'own-hooks');
  await mkdir(hooks);
  await writeFile(
    join(hooks, '10-own.yaml'),
    'stages: {install.pre: [{commands: [echo of the appliance]}]}',
  );
  const built = await lab.run('gnt-appliance', ['build', '--hooks', hooks]);
  assert.equal(built.status, 0, built.stderr);
  // The node makes it again by itself.
  await rm(lab.paths.applianceDir, { recursive: true });
  await lab.startNode();
});

after(async () => {
  await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  assert.deepEqual(leftovers, []);
});

// A failed assertion must not fail the tests after it.
afterEach(async () => {
  const { stdout } = await lab.run('gnt-job', ['list', '--json']);
  for (const { id, status } of jobRecord.array().parse(JSON.parse(stdout || '[]'))) {
    if (!['success', 'error', 'canceled'].includes(status))
      await lab.run('gnt-job', ['cancel', String(id)]);
  }
  await lab.run('gnt-instance', ['remove', '--force', NAME]);
});

async function writeOs(dir: string, script: string): Promise<void> {
  await mkdir(join(dir, 'untrusted'), { recursive: true });
  await writeFile(join(dir, 'untrusted/create'), script, { mode: 0o755 });
  await writeFile(join(dir, 'ganeti_api_version'), '20\n');
  await writeFile(join(dir, 'parameters.list'), '');
}

/** Writes into the disk, says that all went well, and ends the machine as the key of sysrq does. */
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

async function add(...options: string[]): Promise<ProgramResult> {
  return lab.run('gnt-instance', ['add', '--no-start', ...options, NAME]);
}

async function reinstall(...options: string[]): Promise<ProgramResult> {
  return lab.run('gnt-instance', ['reinstall', '--force', '--no-start', ...options, NAME]);
}

async function info(): Promise<InstanceInfo> {
  const { stdout } = await lab.run('gnt-instance', ['info', '--json', NAME]);
  return instanceInfo.parse(JSON.parse(stdout));
}

/**
 * The failed instance explains itself, does not run, cannot be started, and goes without a trace.
 */
async function assertFailedAndRemove(
  result: ProgramResult,
  code: string,
  stage: string | undefined,
  text: RegExp,
): Promise<void> {
  assert.equal(result.status, 1, result.stderr);
  assert.match(result.stderr, new RegExp(`^error\\[${code}\\]: `, 'm'));
  assert.match(result.stderr, text);
  const shown = await info();
  assert.equal(shown.status, 'install_failed');
  if (stage !== undefined) assert.equal(shown.install?.stage, stage);
  assert.match(result.stderr, new RegExp(shown.install?.stage ?? 'no stage'));
  assert.equal(shown.install?.error?.code, code);
  assert.equal(shown.running, null);
  assert.equal((await lab.run('gnt-instance', ['startup', NAME])).status, 2);
  assert.equal((await lab.run('gnt-instance', ['log', NAME])).status, 0);
  await remove();
}

/** Every file that the instance has for its disks, with its SHA-256. */
async function digestDisks(): Promise<readonly (readonly [name: string, digest: string])[]> {
  const dir = join(lab.paths.disksDir, (await info()).uuid);
  return Promise.all(
    (await readdir(dir)).map(async (name) => {
      const digest = createHash('sha256').update(await readFile(join(dir, name)));
      return [name, digest.digest('hex')] as const;
    }),
  );
}

async function remove(): Promise<void> {
  const removed = await lab.run('gnt-instance', ['remove', '--force', NAME]);
  assert.equal(removed.status, 0, removed.stderr);
  const { stdout } = await run('ip', [
    'netns',
    'exec',
    lab.paths.networkNamespace,
    'ip',
    '-br',
    'link',
  ]);
  assert.doesNotMatch(stdout, /gnt\.com/);
}

/**
 * Waits until the installation is at a stage. A command instead of a request would take processor
 * time from the machine.
 */
async function untilStage(stage: string): Promise<void> {
  const deadline = Date.now() + 120_000;
  while (Date.now() < deadline) {
    const { status, body } = await askSocket(lab.paths.nodedSocket, `/v1/instances/${NAME}`);
    if (status === 200) {
      const { install } = instanceInfo.parse(JSON.parse(body));
      if (install?.stage === stage) return;
      assert.notEqual(
        install?.state,
        'failed',
        `failed before ${stage}: ${install?.error?.message ?? ''}`,
      );
    }
    await sleep(100);
  }
  assert.fail(`the installation never came to ${stage}`);
}

async function metadPid(): Promise<number | null> {
  const { body } = await askSocket(lab.paths.nodedSocket, '/v1/node');
  return nodeInfo.parse(JSON.parse(body)).metad.pid;
}

test('installs a small image with a script, so that the failures below are not for another reason', async () => {
  const result = await add('--os-image', image, '-o', 'hello', '-s', '32M');
  assert.equal(result.status, 0, result.stderr);
  const shown = await info();
  assert.equal(shown.installState, 'installed');
  const stages = shown.install?.stages.map(({ stage }) => stage);
  assert.deepEqual(
    ['boot-appliance', 'image', 'os-scripts', 'shutdown-appliance'].filter(
      (stage) => !stages?.some((done) => done === stage),
    ),
    [],
  );
  assert.match((await lab.run('gnt-instance', ['log', NAME])).stdout, /^of the appliance$/m);
  assert.match((await lab.run('gnt-appliance', ['info'])).stdout, /^Hook: 10-own\.yaml, SHA-256 /m);
  await remove();
});

test('refuses an image larger than the disk before the first byte is written, with both sizes', async () => {
  const result = await add('--os-image', image, '-s', '8M');
  const [[name, digest] = [], ...others] = await digestDisks();
  assert.deepEqual([name, others], ['disk0.raw', []]);
  const zeros = createHash('sha256').update(Buffer.alloc(8 * 1024 ** 2));
  assert.equal(digest, zeros.digest('hex'), 'something was written');
  await assertFailedAndRemove(
    result,
    'IMAGE_TOO_LARGE',
    'image',
    /25165824[^]*8388608|8388608[^]*25165824/,
  );
});

test('fails with the status and the last lines of a script that ends with an error', async () => {
  const result = await add('--os-image', image, '-o', 'failing', '-s', '32M');
  await assertFailedAndRemove(result, 'SCRIPT_FAILED', 'os-scripts', /status \d+/);
});

test('fails on a package that is not a gzip tar', async () => {
  const broken = join(lab.paths.root, 'broken.tar.gz');
  await writeFile(broken, 'this is no archive');
  const result = await add('--os-image', image, '--personalization-package', broken, '-s', '32M');
  await assertFailedAndRemove(result, 'PACKAGE_INVALID', 'personalize', /gzip|tar/);
});

test('ends an appliance that takes longer than the install timeout, and says at which stage', async () => {
  const install = async (timeoutS: number): Promise<ProgramResult> => {
    await lab.run('gnt-cluster', ['modify', '--install-timeout', String(timeoutS)]);
    return add('--os-image', image, '-o', 'sleeper', '-s', '32M');
  };
  try {
    for (const timeoutS of INSTALL_TIMEOUTS_S) {
      const result = await install(timeoutS);
      const { stdout: log } = await lab.run('gnt-instance', ['log', NAME]);
      const hasBegun = /^sleeping$/m.test(log);
      const text = new RegExp(`did not end within ${timeoutS} s`);
      const stage = hasBegun ? 'os-scripts' : undefined;
      await assertFailedAndRemove(result, 'INSTALL_TIMEOUT', stage, text);
      if (hasBegun) return;
    }
    assert.fail('no script began in time');
  } finally {
    await lab.run('gnt-cluster', ['modify', '--install-timeout', '0']);
  }
});

test('fails when QEMU is killed in the middle of a script', async () => {
  const adding = add('--os-image', image, '-o', 'sleeper', '-s', '32M');
  await untilStage('os-scripts');
  const { stdout } = await run('pgrep', ['-f', `qemu-system.*${(await info()).instanceId}`]);
  for (const pid of stdout.trim().split('\n')) process.kill(Number(pid), 'SIGKILL');
  await assertFailedAndRemove(await adding, 'APPLIANCE_CRASHED', 'os-scripts', /SIGKILL/);
});

test('goes on when metad is killed in the middle of a script: cancelling ends the machine long before its script would', async () => {
  const adding = add('--os-image', image, '-o', 'sleeper', '-s', '32M');
  await untilStage('os-scripts');
  const before = await metadPid();
  process.kill(before ?? assert.fail('metad does not run'), 'SIGKILL');
  for (let pid = await metadPid(); pid === null || pid === before; pid = await metadPid())
    await sleep(100);
  assert.equal((await info()).status, 'installing');
  const jobId = (await info()).install?.jobId;
  const startedAt = Date.now();
  assert.equal((await lab.run('gnt-job', ['cancel', String(jobId)])).status, 0);
  const result = await adding;
  const tookMs = Date.now() - startedAt;
  assert.ok(tookMs < SCRIPT_MS / 10, `the cancelled job took ${tookMs} ms to end`);
  assert.equal(result.status, 1, result.stderr);
  assert.match(result.stderr, /JOB_CANCELED/);
  assert.equal((await info()).install?.state, 'canceled');
  await remove();
});

test('explains an installation that a kill of noded interrupted, and installs it again; a script that then ends the machine leaves what was installed', async () => {
  const adding = add('--os-image', image, '-o', 'sleeper', '-s', '32M');
  await untilStage('os-scripts');
  lab.node().kill('SIGKILL');
  // Whoever keeps the only place keeps out the next one.
  await lab.startNode('--max-installs', '1');
  // The command waits for the daemon to come back, and hears from it what became of its job.
  const result = await adding;
  assert.equal(result.status, 1, result.stderr);
  assert.match(result.stderr, /JOB_INTERRUPTED/);
  const shown = await info();
  assert.equal(shown.status, 'install_failed');
  assert.equal(shown.install?.stage, 'os-scripts');
  assert.equal(shown.install.error?.code, 'JOB_INTERRUPTED');
  assert.match(shown.explanation, /reinstall/);
  const again = await reinstall('-o', 'hello');
  assert.equal(again.status, 0, again.stderr);
  assert.equal((await info()).installState, 'installed');
  const disks = await digestDisks();
  for (const [os, code] of [
    ['switch-off', 'APPLIANCE_NO_RESULT'],
    ['reset', 'APPLIANCE_CRASHED'],
  ] as const) {
    const ended = await reinstall('-o', os);
    assert.equal(ended.status, 1, ended.stderr);
    assert.match(ended.stderr, new RegExp(`^error\\[${code}\\]: `, 'm'));
    assert.match((await lab.run('gnt-instance', ['log', NAME])).stdout, /^the end$/m);
    assert.deepEqual(await digestDisks(), disks);
    assert.equal((await info()).installState, 'installed');
  }
  await remove();
  await lab.stopNode();
  await lab.startNode();
});

test('says that the host is full, gives back what was half written, and installs again when there is room', async () => {
  await lab.stopNode();
  // The store, the disks and the appliance are on one small file system.
  const { stateDir } = lab.paths;
  await run('mount', ['-t', 'tmpfs', '-o', 'size=2g,mode=0755', 'gnt-small', stateDir]);
  try {
    await lab.startNode();
    assert.equal((await lab.run('gnt-appliance', ['build'])).status, 0);
    const { bsize, blocks, bavail } = await statfs(stateDir);
    const usedMiB = Math.ceil(((blocks - bavail) * bsize) / 1024 ** 2);
    await run('mount', ['-o', `remount,size=${usedMiB + 80}m`, stateDir]);
    const large = join(lab.paths.root, 'large.img');
    await writeFile(large, randomBytes(128 * 1024 ** 2));
    const result = await add('--os-image', large, '--image-format', 'raw', '-s', '128M');
    assert.equal(result.status, 1, result.stderr);
    assert.match(result.stderr, /^error\[DISK_FULL\]: /m);
    assert.match(result.stderr, /^hint: free space below/m);
    const shown = await info();
    assert.deepEqual([shown.status, shown.install?.stage], ['install_failed', 'image']);
    const { bavail: freeBlocks } = await statfs(stateDir);
    assert.ok(freeBlocks * bsize > 64 * 1024 ** 2, 'what was half written is still there');
    await run('mount', ['-o', 'remount,size=2g', stateDir]);
    const again = await reinstall();
    assert.equal(again.status, 0, again.stderr);
    await remove();
  } finally {
    await lab.stopNode();
    await run('umount', [stateDir]);
    await lab.startNode();
  }
});

test('ends an appliance that does not say a word, after a second try', async () => {
  await lab.stopNode();
  // No machine boots that fast under emulation.
  await lab.startNode('--appliance-boot-timeout', '1');
  const result = await add('--os-image', image, '-o', 'hello', '-s', '32M', '-H', 'kvm:accel=tcg');
  assert.match(
    result.stderr,
    /did not report within 1 s; nothing was written yet: it is booted once more/,
  );
  await assertFailedAndRemove(
    result,
    'APPLIANCE_NO_RESULT',
    'boot-appliance',
    /--appliance-boot-timeout/,
  );
  await lab.stopNode();
  await lab.startNode();
});

test('builds or refuses, but never boots, an appliance whose bytes were changed', async () => {
  const root = join(lab.paths.applianceDir, 'manifest.json');
  const manifest = await readFile(root, 'utf8');
  await rm(root);
  await writeFile(
    root,
    manifest.replace(
      /"sha256": ?"[0-9a-f]/,
      (match) => `${match.slice(0, -1)}${match.endsWith('0') ? '1' : '0'}`,
    ),
  );
  const doctor = await lab.run('gnt-node', ['doctor']);
  assert.equal(doctor.status, 0);
  assert.match(doctor.stdout, /differs from its manifest/);
  const result = await add('--os-image', image, '-s', '32M');
  assert.equal(result.status, 0, result.stderr);
  await remove();
});
