import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { buildGuestImage } from '../../scripts/guest-image/build.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { endLab } from './support/end-lab.ts';
import { placeImage, WITHOUT_INSTALL } from './support/placed-image.ts';
import { receiveUntil } from './support/receive-until.ts';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';

/**
 * Debian's own cloud-init in real guests that SMBIOS alone directs to EC2 and OpenStack. Each has a
 * NIC of its own with DHCP and no route to the metadata service, because cloud-init's local stage
 * only asks on its first NIC. A guest under emulation takes a minute, so other tests cover the
 * rest: test/noded/instances/ds-identify.int.test.ts the SMBIOS of other datasources,
 * one-machine.vm.test.ts NoCloud by the seed disk, test/metad/cloud-init.slow.test.ts later boots.
 */
const USER_DATA = join(import.meta.dirname, '../../fixtures/cloud-init/report-each-boot.yaml');
const BOOT_TIMEOUT_MS = 420_000;
const HOST = 'stock';
const NAME = `${HOST}.example.com`;
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
  await remove();
  await endLab(lab);
});

async function remove(): Promise<void> {
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', NAME]);
}

async function info(): Promise<InstanceInfo> {
  const { stdout, stderr } = await lab.run('gnt-instance', ['info', '--json', NAME]);
  return instanceInfo.parse(JSON.parse(stdout || stderr));
}

for (const [dialects, source] of [
  ['ganeti,ec2', 'aws'],
  ['openstack,ganeti', 'openstack'],
] as const)
  test(`a stock guest with a NIC of its own is led to ${source} by SMBIOS alone, and runs all of its user data`, async (t) => {
    t.after(remove);
    const added = await lab.run('gnt-instance', [
      'add', ...WITHOUT_INSTALL, '--os-image', imagePath, '--communication=yes', '--seed-disk', 'no', '--dialects', dialects,
      '--net', '0:mode=user', '--user-data', USER_DATA, '--ssh-key', sshKey, '-s', '2G', '-B', 'memory=512,vcpus=1', NAME,
    ]); // prettier-ignore
    assert.equal(added.status, 0, added.stderr);
    await placeImage(lab, NAME, imagePath);
    const started = await lab.run('gnt-instance', ['startup', NAME]);
    assert.equal(started.status, 0, started.stderr);
    const text = await receiveUntil(lab, NAME, '\n', BOOT_TIMEOUT_MS);
    const fields = text
      .trim()
      .split(' ')
      .map((field) => field.split('=', 2));
    const { id, ...rest } = Object.fromEntries(fields) as Record<string, string>;
    assert.deepEqual(rest, {
      source,
      status: 'done',
      boots: '1',
      'user-data-runs': '1',
      ssh: '1',
      errors: '"errors":[]',
      host: HOST,
      networks: '10.0.2,169.254',
    });
    assert.equal(id, (await info()).instanceId);
  });
