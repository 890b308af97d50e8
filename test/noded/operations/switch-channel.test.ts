import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { DEFAULT_DIALECTS, type Dialect } from '#shared/contract/primitives.ts';
import {
  explainDatasource,
  hasSeedDisk,
  isChannelFirst,
  planSmbios,
  warnOfNicOrder,
} from '../../../noded/instances/view/cloud-init-datasource.ts';
import { planSystemdCredentials } from '../../../noded/instances/view/systemd-credentials.ts';
import { applyChanges, refuseUnservedSeed } from '../../../noded/operations/change-instance.ts';
import { modifyOpcode } from '../support/opcodes.ts';
import { instanceRecord } from '../support/records.ts';

const ORDERS: readonly (readonly Dialect[])[] = [
  DEFAULT_DIALECTS,
  ['ec2'],
  ['ec2', 'nocloud'],
  ['openstack'],
  ['nocloud'],
  ['ganeti'],
];
const nics = [{ mode: 'user' as const }];
const modify = (
  instance: InstanceRecord,
  input: Parameters<typeof modifyOpcode>[0],
): InstanceRecord => applyChanges(instance, modifyOpcode(input));

/** Returns all settings that decide how a guest finds its metadata. */
function decided(instance: InstanceRecord) {
  return {
    hasSeedDisk: hasSeedDisk(instance),
    isChannelFirst: isChannelFirst(instance),
    datasource: explainDatasource(instance),
    smbios: planSmbios(instance),
    credentials: planSystemdCredentials(instance),
    record: instance,
  };
}

test('an instance whose channel is switched on later is one that was added with it', () => {
  for (const order of ORDERS)
    for (const seedDisk of [undefined, false, ...(order.includes('nocloud') ? [true] : [])]) {
      const input = { dialects: [...order], nics, ...(seedDisk !== undefined && { seedDisk }) };
      const added = instanceRecord({ ...input, communication: true });
      const switched = modify(instanceRecord({ ...input, communication: false }), {
        communication: true,
      });
      assert.deepEqual(decided(switched), decided(added), JSON.stringify(input));
    }
});

test('the seed disk follows the dialects of an instance unless the operator refused it', () => {
  const order: Dialect[] = ['openstack', 'nocloud'];
  const later = modify(instanceRecord({ communication: true, dialects: ['openstack'] }), {
    dialects: order,
  });
  assert.deepEqual(
    decided(later),
    decided(instanceRecord({ communication: true, dialects: order })),
  );
  const refused = instanceRecord({ communication: false, seedDisk: false });
  assert.equal(hasSeedDisk(modify(refused, { communication: true })), false);
  assert.equal(hasSeedDisk(modify(refused, { communication: true, seedDisk: true })), true);
});

test('modify refuses dialects that a seed disk cannot do without', () => {
  const seeded = instanceRecord({ communication: true });
  const check = (instance: InstanceRecord, input: Parameters<typeof modifyOpcode>[0]): void => {
    refuseUnservedSeed(instance, modify(instance, input), modifyOpcode(input));
  };
  assert.throws(() => check(seeded, { dialects: ['ec2'] }), { code: 'VALIDATION' });
  check(seeded, { dialects: ['ec2'], seedDisk: false });
  check(instanceRecord({ communication: false }), { dialects: ['ec2'] });
  const plain = instanceRecord({ communication: true, dialects: ['ec2'] });
  assert.throws(() => check(plain, { seedDisk: true }), { code: 'VALIDATION' });
  check(plain, { metadata: { role: 'db' } });
});

test('a change that puts the channel before the NICs of an instance is announced', () => {
  const off = instanceRecord({ communication: false, seedDisk: false, dialects: ['ec2'], nics });
  const on = modify(off, { communication: true });
  assert.match(warnOfNicOrder(off, on) ?? '', /channel comes before its NICs/);
  assert.equal(warnOfNicOrder(on, on), null);
  assert.equal(warnOfNicOrder({ ...off, nics: [] }, { ...on, nics: [] }), null);
  const seeded = instanceRecord({ communication: false, nics });
  assert.equal(warnOfNicOrder(seeded, modify(seeded, { communication: true })), null);
});
