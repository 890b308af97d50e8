import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { run } from '#shared/process/run.ts';
import { planSmbios } from '../../../noded/instances/view/cloud-init-datasource.ts';
import { cloudInitTree } from '../../metad/support/cloud-init-guest.ts';
import { instanceRecord } from '../support/records.ts';

/**
 * Runs Debian's own ds-identify on the DMI strings of an instance. A VM test shows that the strings
 * reach the guest (cloud-init.long.test.ts).
 */
const EC2_ID = 'ec2a1b2c-0000-4000-8000-000000000001';
const SEED = 'DEVNAME=/dev/vdb\nLABEL=CIDATA\nTYPE=iso9660\n';
let program = '';

before(
  async () => {
    program = join(await cloudInitTree(), 'usr/lib/cloud-init/ds-identify');
  },
  { timeout: 1_200_000 },
);

/** @returns the datasource that ds-identify selects; null if it disables cloud-init */
async function identify(instance: InstanceRecord, blkid = ''): Promise<string | null> {
  const root = await mkdtemp(join(tmpdir(), 'gnt-ds-'));
  try {
    const { manufacturer, product, serial, uuid } = planSmbios(instance);
    const files: Record<string, string> = {
      'sys/class/dmi/id/sys_vendor': manufacturer,
      'sys/class/dmi/id/product_name': product,
      'sys/class/dmi/id/product_serial': serial,
      'sys/class/dmi/id/product_uuid': uuid,
      'proc/cmdline': '',
      'proc/1/cmdline': '/sbin/init\0',
      'bin/blkid': `#!/bin/sh\nprintf '%s' '${blkid}'\n`,
      'bin/systemd-detect-virt': '#!/bin/sh\necho kvm\n',
    };
    for (const [name, text] of Object.entries(files)) {
      const path = join(root, name);
      await mkdir(join(path, '..'), { recursive: true });
      await writeFile(path, `${text}\n`, { mode: 0o755 });
    }
    await run('sh', [program], {
      env: { PATH: `${join(root, 'bin')}:/usr/bin:/bin`, PATH_ROOT: root },
    }).catch(() => undefined); // status 1: no datasource
    const config = await readFile(join(root, 'run/cloud-init/cloud.cfg'), 'utf8').catch(() => '');
    return /^datasource_list: \[ (\w+), None \]$/m.exec(config)?.[1] ?? null;
  } finally {
    await rm(root, { recursive: true });
  }
}

const record = (changes: Partial<InstanceRecord>): InstanceRecord => ({
  ...instanceRecord({}),
  communication: true,
  seedDisk: false,
  instanceId: EC2_ID,
  ...changes,
});

for (const [dialect, datasource] of [
  ['ec2', 'Ec2'],
  ['openstack', 'OpenStack'],
  ['nocloud', 'NoCloud'],
  ['gce', 'GCE'],
] as const) {
  test(`SMBIOS alone leads a stock guest to ${dialect}`, async () => {
    assert.equal(await identify(record({ dialects: ['ganeti', dialect] })), datasource);
  });
}

test('the seed disk leads it to NoCloud, whatever the dialects', async () => {
  const instance = record({ seedDisk: true, dialects: ['ec2', 'nocloud'] });
  assert.equal(await identify(instance, SEED), 'NoCloud');
});

test('without the channel nothing leads it anywhere', async () => {
  assert.equal(await identify(record({ communication: false })), null);
});
