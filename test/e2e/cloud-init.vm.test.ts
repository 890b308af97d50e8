import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { buildGuestImage } from '../../scripts/guest-image/build.ts';
import { createLab, type Lab } from '../../scripts/lab/lab.ts';
import { receiveUntil } from './support/receive-until.ts';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';

/**
 * Debian's own cloud-init in real guests, one for each datasource that SMBIOS alone leads it to (NoCloud is the seed disk's, in
 * one-machine.vm.test.ts; later boots are in test/metad/cloud-init.int.test.ts). They boot at the same time: a guest under emulation
 * takes a minute. One processor each: two that wait for each other on a busy host take many times as long.
 */
const USER_DATA = join(import.meta.dirname, '../../fixtures/cloud-init/report-each-boot.yaml');
const BOOT_TIMEOUT_MS = 420_000;
const dialects = ['ec2', 'openstack'] as const;
type Dialect = (typeof dialects)[number];

const nameOf = (dialect: Dialect): string => `${dialect}.example.com`;
let lab: Lab;
let imagePath: string;
let sshKey: string;

before(async () => {
  imagePath = (await buildGuestImage({ log: () => undefined })).path;
  lab = await createLab('gnt-ci');
  sshKey = join(lab.paths.root, 'key.pub');
  await writeFile(sshKey, 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJXo from-the-view\n');
  await lab.startNode();
});

after(async () => {
  for (const dialect of dialects) {
    await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', nameOf(dialect)]);
  }
  const status = await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  assert.equal(status, 0);
  assert.deepEqual(leftovers, []);
});

async function info(dialect: Dialect): Promise<InstanceInfo> {
  const { stdout, stderr } = await lab.run('gnt-instance', ['info', '--json', nameOf(dialect)]);
  return instanceInfo.parse(JSON.parse(stdout || stderr));
}

async function command(...args: string[]): Promise<void> {
  const result = await lab.run('gnt-instance', args);
  assert.equal(result.status, 0, result.stderr);
}

/** Waits for what a guest says at the end of its boot. */
async function assertReport(dialect: Dialect): Promise<void> {
  const text = await receiveUntil(lab, nameOf(dialect), '\n', BOOT_TIMEOUT_MS);
  const fields = text
    .trim()
    .split(' ')
    .map((field) => field.split('=', 2));
  const { id, ...rest } = Object.fromEntries(fields) as Record<string, string>;
  assert.deepEqual(rest, {
    source: dialect === 'ec2' ? 'aws' : dialect,
    status: 'done',
    boots: '1',
    'user-data-runs': '1',
    ssh: '1',
    errors: '"errors":[]',
    host: dialect,
  });
  assert.equal(id, (await info(dialect)).instanceId);
}

test('stock guests are led to ec2 and openstack by SMBIOS alone, and run all of their user data', async () => {
  await Promise.all(
    dialects.map(async (dialect) => {
      await command(
        'add', '--os-image', imagePath, '--communication=yes', '--seed-disk', 'no', '--dialects', `ganeti,${dialect}`,
        '--user-data', USER_DATA, '--ssh-key', sshKey, '-s', '2G', '-B', 'memory=512,vcpus=1', nameOf(dialect),
      ); // prettier-ignore
      await assertReport(dialect);
    }),
  );
});
