import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { buildGuestImage } from '../../scripts/guest-image/build.ts';
import { findSecret } from '../../scripts/demo/find-secret.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { endLab } from './support/end-lab.ts';
import { firstDiskOf } from './support/installed.ts';
import { type PackageMirror, startPackageMirror } from './support/package-mirror.ts';
import { receiveUntil } from './support/receive-until.ts';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { run } from '#shared/process/run.ts';
import { verifyByPython } from '../lab/identity-lab.ts';
import { listenOnLoopback } from '../lab/listen-on-loopback.ts';

/**
 * The main workflow with one real guest, in the operator's order. Each test continues from the
 * state of the previous one, because an emulated guest takes a minute to boot.
 */
const NAME = 'one.example.com';
const fixtures = join(import.meta.dirname, '../../fixtures/demo');
const canary = `canary-${randomBytes(12).toString('hex')}`;
const [ISSUER, AUDIENCE] = ['https://id.example.com', 'https://vault.example.com'];
/** Reports the value that systemd read earlier from SMBIOS, and a token for a verifier. */
const REPORT = `#cloud-config
bootcmd:
  - |
    at=http://169.254.169.254/ganeti/latest
    { echo "SMBIOS says: $(systemd-creds --system cat system.hostname)"
      echo "token: $(curl -sf "$at/identity/token?audience=${AUDIENCE}")"
    } | curl -sf -X POST --data-binary @- $at/write
`;
let lab: Lab;
let packages: Server;
let packagesPort: number;
let packageChecksum: string;
let mirror: PackageMirror;
let secretFile: string;
let imagePath: string;

before(async () => {
  const image = await buildGuestImage({ log: () => undefined });
  lab = await createLab('gnt-one');
  secretFile = join(lab.paths.root, 'secret');
  await writeFile(secretFile, `${canary}\n`, { mode: 0o600 });
  const [osDir = ''] = lab.paths.osSearchPath;
  await mkdir(osDir, { recursive: true });
  await cp(join(fixtures, 'os/personal-debian'), join(osDir, 'personal-debian'), {
    recursive: true,
  });
  const archive = join(lab.paths.root, 'x.tar.gz');
  await run('tar', [
    '-C',
    join(fixtures, 'package'),
    '--owner=0',
    '--group=0',
    '-czf',
    archive,
    '.',
  ]);
  const archiveBytes = await readFile(archive);
  packageChecksum = `sha512:${createHash('sha512').update(archiveBytes).digest('hex')}`;
  packages = createServer((request, response) => {
    const isAllowed =
      request.headers.authorization ===
      `Basic ${Buffer.from('someone:pass-word').toString('base64')}`;
    response.writeHead(isAllowed ? 200 : 401);
    response.end(isAllowed ? archiveBytes : 'who are you?');
  });
  packagesPort = await listenOnLoopback(packages);
  mirror = await startPackageMirror('local-1');
  await writeFile(join(lab.paths.root, 'mirror.yaml'), mirror.hook);
  await lab.startNode();
  imagePath = image.path;
});

after(async () => {
  packages.close();
  mirror.close();
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', NAME]);
  await endLab(lab);
});

async function info(): Promise<InstanceInfo> {
  const { stdout, stderr } = await lab.run('gnt-instance', ['info', '--json', NAME]);
  return instanceInfo.parse(JSON.parse(stdout || stderr));
}

test('installs a Debian image with script, parameters of each visibility, a package behind a password and a hook', async () => {
  const allowed = ['--package-mirror', `local-1=${mirror.url}`];
  const identity = ['--identity', 'yes', '--identity-issuer', ISSUER];
  assert.equal((await lab.run('gnt-cluster', ['modify', ...allowed, ...identity])).status, 0);
  const reporting = join(lab.paths.root, 'report.yaml');
  await writeFile(reporting, REPORT);
  const result = await lab.run('gnt-instance', [
    'add', '--os-image', imagePath, '-o', 'personal-debian', '--communication=yes',
    '-O', 'greeting=good morning', '--os-parameters-private', 'licence=LIC-PRIVATE-1',
    '--os-parameters-secret', `root_password=@${secretFile}`,
    '--personalization-package', `http://127.0.0.1:${packagesPort}/x.tar.gz`,
    '--personalization-user', 'someone', '--personalization-password', 'pass-word',
    '--personalization-checksum', packageChecksum,
    '--user-data', join(fixtures, 'user-data.sh'), '--user-data', reporting, '-s', '2G', '-B', 'memory=512,vcpus=1',
    '--net', '0:mode=user', '--hooks', join(lab.paths.root, 'mirror.yaml'), NAME,
  ]); // prettier-ignore
  assert.equal(result.status, 0, result.stderr);
  const { install, status } = await info();
  assert.equal(status, 'running');
  assert.deepEqual(
    install?.stages.map(({ stage }) => stage),
    [
      'fetch-image', 'check-package', 'create-disks', 'prepare-appliance', 'boot-appliance', 'hooks', 'wait-disks', 'image', 'os-scripts', 'mount',
      'personalize', 'after-install', 'unmount', 'sync', 'shutdown-appliance',
    ], // prettier-ignore
  );
});

test("the hook read from the package mirror with the appliance's own tools, from the folder that is allowed and nowhere else", async () => {
  const { stdout } = await lab.run('gnt-instance', ['log', NAME]);
  const lines = stdout.split('\n');
  assert.deepEqual(
    mirror.told.filter((line) => !lines.includes(line)),
    [],
    stdout,
  );
  assert.deepEqual(
    mirror.asked.filter((path) => !path.startsWith('/debian/')),
    [],
  );
});

test('shows private values as redacted and secrets by name only, in text and in JSON', async () => {
  const text = await lab.run('gnt-instance', ['info', NAME]);
  const json = await lab.run('gnt-instance', ['info', '--json', NAME]);
  const log = await lab.run('gnt-instance', ['log', NAME]);
  const jobs = await lab.run('gnt-job', ['info', '--json', '1']);
  for (const { stdout, stderr } of [text, json, log, jobs]) {
    assert.doesNotMatch(stdout + stderr, new RegExp(`${canary}|LIC-PRIVATE-1|pass-word`));
  }
  assert.match(text.stdout, /root_password/);
  assert.match(text.stdout, /<redacted>/);
});

test('the guest boots from its own disk, finds the service behind a user NIC and runs its user data', async () => {
  const report = await receiveUntil(lab, NAME, 'end-of-report\n', 420_000);
  assert.match(report, /^hello from one, Debian GNU\/Linux 12/m);
  assert.match(report, /^greeting: good morning$/m);
  assert.match(report, /^package: laid over the disk/m);
  assert.match(report, /^root has a password: yes$/m);
  assert.match(report, /^I am .*"name": "one\.example\.com"/m);
  assert.match(report, /^with X-Forwarded-For I get: 403$/m);
  assert.match(report, /^SMBIOS says: one$/m);
  await verifyToken(/^token: (.+)$/m.exec(report)?.[1] ?? '');
});

/** Verifies as a verifier does, by the exported keys alone. */
async function verifyToken(token: string): Promise<void> {
  const dir = join(lab.paths.root, 'identity');
  assert.equal((await lab.run('gnt-cluster', ['identity', 'export', dir])).status, 0);
  const keys = await readFile(join(dir, '.well-known/jwks.json'), 'utf8');
  const trusted = { keys, audience: AUDIENCE, issuer: ISSUER };
  const [, claims] = await verifyByPython(token, trusted);
  assert.match(JSON.stringify(claims), new RegExp(NAME.replaceAll('.', '\\.')));
}

test('the verdict of its cloud-init is known on the host, stage by stage', async () => {
  let { boot } = await info();
  for (let attempt = 0; attempt < 120 && boot?.status === 'running'; attempt += 1) {
    await sleep(500);
    boot = (await info()).boot;
  }
  assert.deepEqual([boot?.status, boot?.errors], ['done', []], JSON.stringify(boot));
  assert.deepEqual(
    boot?.stages.map(({ name }) => name),
    ['init-local', 'init-network', 'modules-config', 'modules-final'],
  );
});

test('QEMU and metad run unprivileged, and metad is alone with the TAPs in its namespace', async () => {
  const { running } = await info();
  const node = JSON.parse((await lab.run('gnt-node', ['info', '--json'])).stdout) as {
    metad: { pid: number };
  };
  for (const pid of [running?.pid ?? 0, node.metad.pid]) {
    const { stdout } = await run('cat', [`/proc/${pid}/status`]);
    assert.match(stdout, /^Uid:\t(?!0\t)\d+/m);
    assert.match(stdout, /^CapEff:\t0+$/m);
    assert.match(stdout, /^NoNewPrivs:\t1$/m);
  }
  assert.match((await run('cat', [`/proc/${running?.pid ?? 0}/status`])).stdout, /^Seccomp:\t2$/m);
  const links = await run('nsenter', [`--net=/proc/${node.metad.pid}/ns/net`, 'ip', '-br', 'link']);
  assert.deepEqual(
    links.stdout
      .trim()
      .split('\n')
      .map((line) => line.split(/[ @]/)[0]),
    ['lo', running?.tap],
  );
});

test('the secret is nowhere on the host but where the operator put it', async () => {
  const planted = join(lab.paths.root, 'planted');
  await writeFile(planted, canary);
  const isExcluded = (path: string): boolean =>
    path === secretFile || path.startsWith(lab.paths.disksDir);
  assert.deepEqual(await findSecret(canary, lab.paths.root, isExcluded), [planted]);
  await rm(planted);
  const packagePassword = await findSecret('pass-word', lab.paths.root, isExcluded);
  assert.deepEqual(packagePassword, []);
});

test('a killed noded finds the running guest again, untouched, and metad kept its secret', async () => {
  const before = await info();
  lab.node().kill('SIGKILL');
  await lab.startNode();
  const after = await info();
  assert.equal(after.running?.pid, before.running?.pid);
  assert.equal(after.status, 'running');
  const parameters = await lab.run('gnt-instance', [
    'metadata',
    NAME,
    'ganeti/latest/os/parameters.json',
  ]);
  assert.match(parameters.stdout, /root_password/);
  assert.doesNotMatch(parameters.stdout, new RegExp(canary));
});

test('a reboot gives the guest a new machine and keeps what only metad knows', async () => {
  const before = await info();
  const rebooted = await lab.run('gnt-instance', ['reboot', '--shutdown-timeout=0', NAME]);
  assert.equal(rebooted.status, 0, rebooted.stderr);
  const after = await info();
  assert.notEqual(after.running?.pid, before.running?.pid);
  assert.equal(after.instanceId, before.instanceId);
  const parameters = await lab.run('gnt-instance', [
    'metadata',
    NAME,
    'ganeti/latest/os/parameters.json',
  ]);
  assert.match(parameters.stdout, /root_password/);
});

test('a running guest runs on while a reinstallation can be refused, and again when it failed', async () => {
  const before = await info();
  const disk = await firstDiskOf(lab, NAME);
  const { ino } = await stat(disk);
  const login = ['--personalization-user', 'someone', '--personalization-password'];
  const reinstall = (password: string, ...args: readonly string[]) =>
    lab.run('gnt-instance', [
      ...['reinstall', '--force', '--shutdown-timeout=0', ...login, password, ...args],
      ...['--os-parameters-secret', `root_password=@${secretFile}`, NAME],
    ]);
  const refused = await reinstall('another-word');
  assert.match(refused.stderr, /^error\[PACKAGE_DOWNLOAD\]: .*401/m);
  const stillRunning = await info();
  assert.deepEqual(withoutRun(stillRunning), withoutRun(before));
  assert.equal(stillRunning.running?.pid, before.running?.pid);

  const page = join(lab.paths.root, 'page.img');
  await writeFile(page, '<html>Not Found</html>');
  const failed = await reinstall('pass-word', '--os-image', page);
  assert.match(failed.stderr, /^error\[IMAGE_INVALID\]: /m);
  assert.match(failed.stderr, /is unchanged: its disks and its record/);
  const after = await info();
  assert.deepEqual(withoutRun(after), withoutRun(before));
  assert.equal(after.status, 'running');
  assert.notEqual(after.running?.pid, before.running?.pid);
  // On the same disk: a write beside it would become another file after a success.
  assert.equal((await stat(disk)).ino, ino);
});

/** Returns an instance without its guest's reports and their times. */
function withoutRun(instance: InstanceInfo): InstanceInfo {
  const said = { guestReport: null, boot: null, running: null, explanation: '' };
  return { ...instance, ...said, modifiedAtMs: 0, serialNo: 0 };
}

test('a killed metad comes back with everything but the secret, which is gone with a reason', async () => {
  const node = JSON.parse((await lab.run('gnt-node', ['info', '--json'])).stdout) as {
    metad: { pid: number };
  };
  process.kill(node.metad.pid, 'SIGKILL');
  let shown = await lab.run('gnt-instance', ['metadata', NAME, 'ganeti/latest/meta_data.json']);
  for (let attempt = 0; attempt < 100 && shown.status !== 0; attempt += 1) {
    await sleep(200);
    shown = await lab.run('gnt-instance', ['metadata', NAME, 'ganeti/latest/meta_data.json']);
  }
  assert.match(shown.stdout, /"name": ?"one\.example\.com"/);
  const parameters = await lab.run('gnt-instance', [
    'metadata',
    NAME,
    'ganeti/latest/os/parameters.json',
  ]);
  assert.notEqual(parameters.status, 0);
  assert.match(parameters.stderr + parameters.stdout, /root_password/);
});

test('a removed instance leaves no process, TAP, disk or log', async () => {
  const removed = await lab.run('gnt-instance', [
    'remove',
    '--force',
    '--shutdown-timeout=0',
    NAME,
  ]);
  assert.equal(removed.status, 0, removed.stderr);
  assert.deepEqual(await readdir(lab.paths.disksDir), []);
  assert.deepEqual(
    (await readdir(lab.paths.logDir)).filter((name) => name.startsWith('install-')),
    [],
  );
  const links = await run('ip', ['netns', 'exec', lab.paths.networkNamespace, 'ip', '-br', 'link']);
  assert.doesNotMatch(links.stdout, /gnt\.com/);
});
