import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { createInstanceDisks } from '../../../../noded/storage/create-instance-disks.ts';
import {
  type BoundCommands,
  createBoundCommands,
} from '../../../../noded/storage/drivers/volumes/bound-commands.ts';
import { createLvm } from '../../../../noded/storage/drivers/lvm/lvm.ts';
import type {
  Volume,
  VolumeSystem,
} from '../../../../noded/storage/drivers/volumes/volume-system.ts';
import { createZfs } from '../../../../noded/storage/drivers/zfs/zfs.ts';
import { examineZfs } from '../../../../noded/operations/doctor/examine-zfs.ts';
import { lookAtVolumes } from '../../../../noded/operations/doctor/volume-facts.ts';
import { modifyClusterHandler } from '../../../../noded/operations/change-cluster.ts';
import type { OperationDependencies } from '../../../../noded/operations/operation-dependencies.ts';
import { parseOpcode } from '../../support/opcodes.ts';
import { instanceRecord } from '../../support/records.ts';
import { THICK } from './sample-volumes.ts';
import { HERE, uuidOf } from './volume-suite.ts';

/** Replaces `zfs` by another or a missing program. */
function commandsOf(program: string, ...before: readonly string[]): BoundCommands {
  const bound = createBoundCommands('ZFS');
  return {
    read: (_, args) => bound.read(program, [...before, ...args]),
    change: (_, args) => bound.change(program, [...before, ...args]),
  };
}
const missing = createZfs(commandsOf('gnt-no-such-zfs'));

test('a node without ZFS is told what to install, one without its module what to load', async () => {
  await assert.rejects(missing.listGroups(), {
    code: 'HOST_PREREQUISITE',
    hint: /^Install zfsutils-linux, and zfs-dkms/,
  });
  const text = "The ZFS modules are not loaded.\\nTry running '/sbin/modprobe zfs' as root.";
  const unloaded = createZfs(commandsOf('sh', '-c', `printf "${text}" >&2; exit 1`));
  await assert.rejects(unloaded.listVolumes(), {
    code: 'HOST_PREREQUISITE',
    hint: /^Run modprobe zfs\./,
  });
});

test('a pool for new disks is refused by name where it is not there, or ZFS is not', async () => {
  const modify = (zfs: VolumeSystem): Promise<unknown> => {
    const clusters = { load: () => Promise.resolve({}) };
    const dependencies = { clusters, zfs, ...HERE } as unknown as OperationDependencies;
    const asked = parseOpcode({ opcode: 'CLUSTER_SET_PARAMS', zfsPool: 'tank/vms' });
    if (asked.opcode !== 'CLUSTER_SET_PARAMS') return assert.fail();
    const { signal } = new AbortController();
    return Promise.resolve(modifyClusterHandler(dependencies).prepare(asked, signal));
  };
  await assert.rejects(modify(missing), { code: 'HOST_PREREQUISITE', message: /no ZFS/ });
  const empty = createZfs(commandsOf('true'));
  await assert.rejects(modify(empty), {
    code: 'HOST_PREREQUISITE',
    message: "this node has no ZFS dataset 'tank/vms'",
    hint: /Its pools are: none\. Create the dataset \(zfs create .*tank\/vms\)/,
  });
});

test('the doctor says what to install where the cluster has a pool and the node no ZFS', async () => {
  const facts = { ...(await lookAtVolumes(missing, 'tank', HERE)), zfsPool: 'tank' };
  const [found] = examineZfs(facts, []);
  assert.equal(found?.level, 'warning');
  assert.match(found.message, /ZFS dataset tank is missing on this node; ZFS does not answer/);
  assert.match(found.hint ?? '', /apt-get install zfsutils-linux/);
});

/** Returns one disk on a volume with an administrator's snapshot. */
function withSnapshot(system: VolumeSystem, group: string, pool: string): VolumeSystem {
  const name = `${uuidOf(10)}.disk`;
  const common = { ...THICK, group, groupUuid: 'g', sizeBytes: 8, isActive: true, pool };
  const tags = [`gnt:instance=${uuidOf(1)}:g`];
  const all: readonly Volume[] = [
    { ...common, name, tags, origin: '' },
    { ...common, name: 'kept', tags: [], origin: name, pool: '' },
  ];
  return { ...system, listVolumes: () => Promise.resolve(all) };
}

test('volumes with snapshots of an administrator are not overwritten, with LVM or ZFS', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-layers-'));
  t.after(() => rm(dir, { recursive: true }));
  const lvm = withSnapshot(createLvm(), 'xenvg', '');
  const zfs = withSnapshot(createZfs(), 'tank/vms', 'tank');
  const record = (template: 'plain' | 'zfs'): InstanceRecord => ({
    ...instanceRecord({ name: 'web1' }),
    ...{ uuid: uuidOf(1), diskTemplate: template },
    disks: [{ uuid: uuidOf(10), name: null, sizeBytes: 8, vg: 'xenvg', dataset: 'tank/vms' }],
  });
  const disks = createInstanceDisks(dir, {
    plain: { system: lvm, ...HERE },
    zfs: { system: zfs, ...HERE },
  });
  const refused = (hint: RegExp) => ({ code: 'CONFLICT', hint });
  await assert.rejects(disks.checkOverwrite(record('plain')), refused(/lvremove xenvg\/kept/));
  await assert.rejects(disks.checkOverwrite(record('zfs')), refused(/zfs destroy tank\/vms\/kept/));
  await assert.rejects(disks.checkCopy(record('zfs')), {
    message: /ZFS volumes, which cannot be copied/,
  });
  await assert.rejects(disks.checkCopy(record('plain')), {
    message: /LVM volumes, which cannot be copied/,
  });
  assert.equal(disks.pathOf(record('plain'), 0), `/dev/xenvg/${uuidOf(10)}.disk`);
  assert.equal(disks.pathOf(record('zfs'), 0), `/dev/zvol/tank/vms/${uuidOf(10)}.disk`);
});
