import assert from 'node:assert/strict';
import { readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, test, type TestContext } from 'node:test';
import { messageOf } from '#shared/errors/app-error.ts';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { endLab } from './support/end-lab.ts';
import { NEWER_RELEASES, newerDebianTree } from '../lab/debian-releases.ts';
import { NEWER_DISK_BYTES, newerGuest } from './support/newer-guest.ts';
import type { NewerGuest } from './support/newer-guest.ts';
import { receiveUntil } from './support/receive-until.ts';

/**
 * Real guests of newer releases: a stock cloud-init with a seed disk and a user NIC, and a systemd
 * that finds the metadata service by SMBIOS alone. Tests without a guest cover the rest
 * (test/metad/cloud-init-releases.long.test.ts, noded/instances/systemd-credentials.test.ts).
 */
const BOOT_TIMEOUT_MS = 240_000;
const COMMAND_TIMEOUT_MS = 2 * BOOT_TIMEOUT_MS;
/** QEMU 7.2's emulation may hang with kernels this new: see newer-guest.ts. */
const MAX_BOOTS = 2;
const NAME = 'modern.example.com';
let lab: Lab;
let sshKey: string;

before(
  async () => {
    for (const release of NEWER_RELEASES) await newerDebianTree(release);
    lab = await createLab('gnt-new');
    sshKey = join(lab.paths.root, 'key.pub');
    const key = join(lab.paths.root, 'key');
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'from-the-view', '-f', key]);
    await lab.startNode();
  },
  { timeout: 1_800_000 },
);
afterEach(remove);
after(() => endLab(lab));

async function remove(): Promise<void> {
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', NAME]);
}

async function succeed(...args: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await lab.run('gnt-instance', args, {
    timeoutMs: COMMAND_TIMEOUT_MS,
  });
  assert.equal(status, 0, `${args[0]}: ${stderr}`);
  return stdout;
}

async function info(): Promise<InstanceInfo> {
  return instanceInfo.parse(JSON.parse(await succeed('info', '--json', NAME)));
}

/** Adds an instance with the guest's disk. */
async function add(guest: NewerGuest, ...options: readonly string[]): Promise<void> {
  const image = join(lab.paths.root, 'empty.raw');
  await writeFile(image, '');
  await truncate(image, 1024 * 1024);
  await succeed(
    ...['add', '--no-install', '--no-start', '--os-image', image, '-C', 'yes', '--ssh-key', sshKey],
    ...['-s', String(NEWER_DISK_BYTES / 2 ** 20), '-B', 'memory=768,vcpus=1'],
    ...['-H', `kvm:${guest.hypervisorParameters}`, ...options, NAME],
  );
  await guest.writeDisk(join(lab.paths.disksDir, (await info()).uuid, 'disk0.raw'));
}

/** Returns a guest's report. A silent guest is booted a second time. */
async function reportOf(t: TestContext, boot: () => Promise<void>): Promise<string> {
  for (let boots = 1; ; boots++) {
    try {
      await boot();
      return await receiveUntil(lab, NAME, 'end-of-report\n', BOOT_TIMEOUT_MS);
    } catch (error) {
      if (boots === MAX_BOOTS) throw error;
      t.diagnostic(`boot ${boots}: ${messageOf(error)}`);
      await remove();
    }
  }
}

/** Report of the guest at the end of its boot. */
const REPORT = `  echo "cloud: $(cloud-id) $(cloud-init status | head -n1)"
  echo "host: $(uname -n)"
  echo "key: $(grep -c from-the-view /root/.ssh/authorized_keys)"
  echo "ran: $(cat /var/ran)"`;
const CLOUD_REPORT =
  'state: running\ncloud: nocloud status: done\nhost: modern\nkey: 1\nran: once\nend-of-report\n';
const USER_DATA = `#cloud-config
disable_root: false
runcmd: [echo once >>/var/ran]
`;

test('cloud-init of Debian 13 takes the seed disk that noded makes, behind a user NIC', async (t) => {
  const guest = await newerGuest('trixie', lab.paths.root, { report: REPORT });
  const userData = join(lab.paths.root, 'user-data');
  await writeFile(userData, USER_DATA);
  const report = await reportOf(t, async () => {
    await add(guest, '--net', '0:mode=user', '--user-data', userData);
    await succeed('startup', `--wait-ready=${BOOT_TIMEOUT_MS / 1000}`, NAME);
  });
  const { boot } = await info();
  assert.deepEqual([boot?.status, boot?.errors, boot?.recoverableErrors], ['done', [], []]);
  assert.equal(report, CLOUD_REPORT);
});

test('a systemd of today finds the service by SMBIOS alone', async (t) => {
  const guest = await newerGuest('testing', lab.paths.root, {
    report: `  echo "host: $(uname -n)"
  cat /root/.ssh/authorized_keys
  /usr/lib/systemd/systemd-imds
  cat /run/credstore/gnt.test`,
    files: { 'etc/cloud/cloud-init.disabled': '', 'etc/hostname': '' },
  });
  const userData = join(lab.paths.root, 'user-data');
  await writeFile(userData, '{"systemd.credentials":[{"name":"gnt.test","text":"by IMDS\\n"}]}\n');
  const report = await reportOf(t, async () => {
    await add(
      guest,
      ...['--seed-disk', 'no', '--dialects', 'ganeti,ec2', '--metadata-token', 'required'],
      ...['--no-nics', '--user-data', userData],
    );
    await succeed('startup', NAME);
  });
  const lines = new Set(report.split('\n').map((line) => line.trim()));
  const key = (await readFile(sshKey, 'utf8')).trim();
  for (const line of ['state: running', 'host: modern', key, 'by IMDS'])
    assert.ok(lines.has(line), report);
});
