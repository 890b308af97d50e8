import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { doctorReport } from '#shared/contract/api.ts';
import { instanceInfo } from '#shared/contract/instance.ts';
import { type ProgramEnd, runProgram } from './support/run-program.ts';

/** Time for the daemon to create its namespace and start metad under load. */
const START_LIMIT_MS = 120_000;

let root: string;
let daemon: ChildProcess;
let image: string;
const NAME = 'cli1.example.com';

const gnt = (program: string, ...args: string[]): Promise<ProgramEnd> =>
  runProgram(`gnt-${program}`, args, { root });
async function succeed(program: string, ...args: string[]): Promise<string> {
  const result = await gnt(program, ...args);
  assert.equal(result.status, 0, `${program} ${args.join(' ')}: ${result.stderr}`);
  return result.stdout;
}

before(async () => {
  // Short, because unix sockets are created below it.
  root = await mkdtemp('/tmp/gc');
  image = join(root, 'disk.raw');
  await writeFile(image, '');
  await truncate(image, 1024 * 1024);
  daemon = spawn(
    join(import.meta.dirname, '../../node_modules/.bin/gnt-noded'),
    ['--node', 'node1'],
    { env: { ...process.env, GNT_ROOT: root }, stdio: 'ignore' },
  );
  const deadlineMs = performance.now() + START_LIMIT_MS;
  while ((await gnt('cluster', 'info')).status === 3) {
    assert.equal(performance.now() < deadlineMs, true, 'gnt-noded did not start');
    await delay(500);
  }
});
after(async () => {
  const ended = new Promise((resolve) => daemon.once('exit', resolve));
  daemon.kill('SIGTERM');
  await ended;
  await rm(root, { recursive: true });
});

test('doctor of a fresh node ends with 0 and says what it looked at', async () => {
  const report = doctorReport.parse(JSON.parse(await succeed('node', 'doctor', '--json')));
  assert.equal(report.ok, true);
  assert.equal(report.findings.length > 0, true);
});

test('an instance lives its life through the commands', async () => {
  await succeed(
    'instance',
    'add',
    '--no-install',
    '--os-image',
    image,
    '-s',
    '8M',
    '-B',
    'memory=64M',
    '-C',
    'yes',
    '--os-parameters-private',
    'license=private-value',
    '--metadata',
    'role=db',
    '--tags',
    'a,b',
    NAME,
  );
  const info = instanceInfo.parse(JSON.parse(await succeed('instance', 'info', '--json', NAME)));
  assert.deepEqual(info.osParametersPrivate, { license: '<redacted>' });
  assert.deepEqual(
    [info.tags, info.disks[0]?.sizeBytes, info.installState],
    [['a', 'b'], 8 * 2 ** 20, 'created'],
  );

  await succeed('instance', 'modify', '-O', 'color=blue', '--metadata', '-role,zone=z', NAME);
  await succeed('instance', 'startup', NAME);
  assert.equal(
    await succeed('instance', 'list', '--no-headers', '-o', 'name,status'),
    `${NAME} running\n`,
  );
  const listed = await succeed(
    'instance',
    ...['list', '--no-headers', '--output', 'name,oper_ram', '--units', 'm', '--separator', ' '],
    ...['--filter', 'status == "running"'],
  );
  assert.equal(listed, `${NAME} 64\n`);
  const message = join(root, 'message');
  await writeFile(message, 'for the guest');
  await succeed('instance', 'send', '--no-wait', NAME, message);
  const metadata: unknown = JSON.parse(
    await succeed('instance', 'metadata', NAME, '/ganeti/latest/meta_data.json'),
  );
  assert.deepEqual((metadata as { metadata: unknown }).metadata, { zone: 'z' });
  const parameters = await succeed(
    'instance',
    'metadata',
    NAME,
    'ganeti/latest/os/parameters.json',
  );
  assert.match(parameters, /"color"/);
  assert.equal((await gnt('instance', 'metadata', NAME, 'no/such')).status, 2);
  assert.equal(await succeed('instance', 'receive', NAME), '');
  const replaced = await gnt('instance', 'replace-token', NAME);
  assert.equal(replaced.status, 0, replaced.stderr);
  const active = await succeed('instance', 'activate-disks', NAME);
  const disk = /^[a-z0-9.-]+:disk\/0:(\/.*disk0\.raw)\n$/.exec(active)?.[1] ?? '';
  assert.equal((await stat(disk)).size, 8 * 2 ** 20);
  await succeed('instance', 'modify', '-B', 'memory=default', '-O', '-color', NAME);
  const reset = instanceInfo.parse(JSON.parse(await succeed('instance', 'info', '--json', NAME)));
  assert.deepEqual([reset.beparams.memoryMiB, reset.osParameters], [512, {}]);

  const renamed = await gnt('instance', 'rename', NAME, 'cli2.example.com');
  assert.equal(renamed.status, 2);
  assert.match(renamed.stderr, /^error\[INSTANCE_STATE\]: /m);
  await succeed('instance', 'shutdown', '--timeout', '0', NAME);
  await succeed('instance', 'rename', NAME, 'cli2.example.com');
  await succeed('instance', 'remove', '--force', 'cli2.example.com');
  assert.equal(await succeed('instance', 'list', '--no-headers'), '');
});

test('the daemon refuses with status 2 what cannot be, and nothing is left of it', async () => {
  const refusals: readonly (readonly [readonly string[], RegExp])[] = [
    [['add', 'x1'], /^error\[VALIDATION\]: No guest OS or OS image specified$/m],
    [
      ['add', '--os-image', '/no/such', '-s', '8M', 'x1'],
      /^error\[IMAGE_NOT_FOUND\]: Image '\/no\/such' not found$/m,
    ],
    [
      ['add', '-o', 'absent', '-s', '8M', 'x1'],
      /^error\[OS_NOT_FOUND\]: Directory for OS absent not found in search path$/m,
    ],
    [
      ['add', '--dry-run', '--os-image', './relative', '-s', '8M', 'x1'],
      /^error\[IMAGE_NOT_FOUND\]: Image '\/.*\/relative' not found$/m,
    ],
    [
      ['add', '--no-nics', '--net', '0:mode=user', '--os-image', image, '-s', '8M', 'x1'],
      /^error\[USAGE\]: --net and --no-nics exclude each other$/m,
    ],
    [['startup', 'x1'], /^error\[INSTANCE_NOT_FOUND\]: .*'x1'/m],
    [['console', 'x1'], /^error\[INSTANCE_NOT_FOUND\]: .*'x1'/m],
    [['metadata', 'x1'], /^error\[INSTANCE_NOT_FOUND\]: .*'x1'/m],
  ];
  for (const [args, expected] of refusals) {
    const result = await gnt('instance', ...args);
    assert.match(result.stderr, expected);
    assert.equal(result.status, 2, args.join(' '));
  }
  assert.equal(await succeed('instance', 'list', '--no-headers'), '');
});

test('what is set for the cluster and an OS is shown again', async () => {
  await succeed('cluster', 'init', '--install-timeout', '3600');
  await succeed('cluster', 'modify', '--expose-service', 'apt=3142:127.0.0.1:3142');
  const shown = await succeed('cluster', 'info');
  assert.match(shown, /^Installation timeout: 3600 s$/m);
  assert.match(shown, /^ {2}apt: port 3142 to 127\.0\.0\.1:3142$/m);
  await succeed('cluster', 'modify', '--expose-service', 'dns=3142/udp:127.0.0.1:53');
  assert.match(await succeed('cluster', 'info'), /^ {2}dns: UDP port 3142 to 127\.0\.0\.1:53$/m);
  const dhcp = await gnt('cluster', 'modify', '--expose-service', 'boot=67/udp:127.0.0.1:67');
  assert.match(dhcp.stderr, /service 'boot': port 67 is in use by the channel's DHCP/);
  await succeed('cluster', 'modify', '--expose-service', 'dns=');
  await succeed('cluster', 'modify', '--expose-service', 'apt=');
  assert.doesNotMatch(await succeed('cluster', 'info'), /apt: port/);
  const mirror = 'http://deb.example.org/debian';
  await succeed('cluster', 'modify', '--package-mirror', `debian=${mirror}`);
  assert.match(await succeed('cluster', 'info'), new RegExp(`^ {2}debian: ${mirror}$`, 'm'));
  const refused = await gnt(
    'cluster',
    'modify',
    '--package-mirror',
    'debian=http://joe:hunter22@x/',
  );
  assert.equal(refused.status, 2);
  assert.match(refused.stderr, /--package-mirror debian/);
  assert.doesNotMatch(refused.stderr, /hunter22/);
  await succeed('cluster', 'modify', '--package-mirror', 'debian=');
  assert.doesNotMatch(await succeed('cluster', 'info'), /deb\.example\.org/);
  await succeed('os', 'modify', '--hidden', 'yes', '--blacklisted', 'no', 'later');
  const absent = await gnt('os', 'modify', '--trusted', 'yes', 'later');
  assert.equal(absent.status, 2);
  assert.match(absent.stderr, /^error\[OS_NOT_FOUND\]: no node has an OS definition 'later'/m);
  assert.equal((await gnt('os', 'diagnose')).status, 0);
});

test('jobs are listed with what they did, and private values are not in them', async () => {
  const jobs = await succeed('job', 'list', '--json');
  assert.match(jobs, /INSTANCE_CREATE/);
  assert.equal(jobs.includes('private-value'), false);
  assert.match(await succeed('job', 'watch', '1'), /^job 1 \(.*\) succeeded/);
});
