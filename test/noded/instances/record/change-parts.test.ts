import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { GIB } from '#shared/units/bytes.ts';
import { changeDisks, changeNics } from '../../../../noded/instances/record/change-parts.ts';
import { planView } from '../../../../noded/instances/view/plan-view.ts';
import { applyParts } from '../../../../noded/operations/change-running-parts.ts';
import { modifyOpcode } from '../../support/opcodes.ts';
import { clusterRecord, countingUuids, instanceRecord } from '../../support/records.ts';

const MACS = ['02:00:00:00:00:01', '02:00:00:00:00:02', '02:00:00:00:00:03'];
const web1 = instanceRecord({
  name: 'web1',
  nics: [
    { mac: MACS[0], mode: 'bridged', link: 'br0', name: 'front' },
    {
      ...{ mac: MACS[1], mode: 'user', name: 'back', ip: '10.0.0.5' },
      network: { addresses: ['10.0.0.5/24'], gateways: ['10.0.0.1'] },
    },
  ],
  disks: [{ sizeBytes: GIB }, { sizeBytes: 2 * GIB, name: 'data' }, { sizeBytes: 3 * GIB }],
});
const context = () => ({ newUuid: countingUuids(), newMac: () => MACS[2] ?? '' });
const nicsAfter = (nics: unknown[], instance: InstanceRecord = web1) =>
  changeNics(instance, modifyOpcode({ nics } as never).nics, context());
const disksAfter = (disks: unknown[], instance: InstanceRecord = web1) =>
  changeDisks(instance, modifyOpcode({ disks } as never).disks, context());

test('NICs are added last, or where it is said, and changes follow one another', () => {
  const after = nicsAfter([
    { action: 'add', nic: { link: 'br1' } },
    { action: 'remove', which: 0 },
    { action: 'add', at: 0, nic: { mode: 'user', mac: MACS[0] } },
  ]);
  assert.deepEqual(
    after.map(({ mac, mode, link }) => [mac, mode, link]),
    [
      [MACS[0], 'user', null],
      [MACS[1], 'user', null],
      [MACS[2], 'bridged', 'br1'],
    ],
  );
  assert.throws(() => nicsAfter([{ action: 'add', at: 3, nic: {} }]), { message: /leave a gap/ });
});

test('a change of a NIC keeps its other values and its UUID', () => {
  const [front, back] = nicsAfter([
    { action: 'modify', which: 'front', changes: { link: 'br7', name: null } },
    { action: 'modify', which: 1, changes: { network: { mtu: 1400 } } },
  ]);
  assert.deepEqual(front, { ...web1.nics[0], link: 'br7', name: null });
  assert.deepEqual(back?.network?.gateways, ['10.0.0.1']);
  assert.equal(back.network.mtu, 1400);
  assert.equal(back.uuid, web1.nics[1]?.uuid);
  const [, byDhcp] = nicsAfter([
    {
      action: 'modify',
      which: -1,
      changes: { ip: null, network: { addresses: [], gateways: [] } },
    },
  ]);
  assert.deepEqual([byDhcp?.ip, byDhcp?.network], [null, null]);
});

test('a NIC between two kinds of networks has the link of its new kind', () => {
  const [toUser] = nicsAfter([{ action: 'modify', which: 0, changes: { mode: 'user' } }]);
  assert.equal(toUser?.link, null);
  const [, toBridge] = nicsAfter([{ action: 'modify', which: 1, changes: { mode: 'bridged' } }]);
  assert.equal(toBridge?.link, 'br0');
});

test('addresses that do not go together, MACs of two NICs and NICs that are not there are refused', () => {
  const refused: readonly [object, RegExp][] = [
    [
      { action: 'modify', which: 1, changes: { network: { addresses: ['10.9.0.5/24'] } } },
      /NIC 1 of 'web1': gateway 10.0.0.1 is not in 10.9.0.5\/24/,
    ],
    [{ action: 'modify', which: 0, changes: { mac: MACS[1] } }, /is given to two NICs/],
    [{ action: 'modify', which: 0, changes: { mac: web1.channel.mac } }, /is given to two NICs/],
    [{ action: 'add', nic: { mac: '03:00:00:00:00:01' } }, /multicast/],
    [{ action: 'remove', which: 2 }, /'web1' has no NIC 2: it has NICs 0 to 1/],
    [{ action: 'remove', which: 'side' }, /no NIC "side"/],
  ];
  for (const [change, message] of refused)
    assert.throws(() => nicsAfter([change]), { code: 'VALIDATION', message });
  const alike = { ...web1, nics: web1.nics.map((nic) => ({ ...nic, name: 'x' })) };
  assert.throws(() => nicsAfter([{ action: 'remove', which: 'x' }], alike), {
    message: /two NICs/,
  });
  const add = { action: 'add', nic: { mode: 'user' } };
  assert.throws(
    () => changeNics(web1, modifyOpcode({ nics: Array(7).fill(add) }).nics, context()),
    { code: 'VALIDATION' },
  );
});

test('disks are added last; one goes at a time, by number or name, and never the first', () => {
  const added = disksAfter([{ action: 'add', disk: { sizeBytes: GIB, name: 'more' } }]);
  assert.deepEqual(added.slice(0, 3), web1.disks);
  assert.deepEqual([added[3]?.name, added[3]?.sizeBytes], ['more', GIB]);
  assert.deepEqual(disksAfter([{ action: 'remove', which: 'data' }]), [
    web1.disks[0],
    web1.disks[2],
  ]);
  const one = { ...web1, disks: web1.disks.slice(0, 1) };
  for (const [which, instance] of [
    [0, web1],
    [web1.disks[0]?.uuid, web1],
    [-1, one],
  ] as const)
    assert.throws(() => disksAfter([{ action: 'remove', which }], instance), {
      code: 'VALIDATION',
      message: /disk 0 of 'web1' holds its system/,
    });
  assert.throws(() => disksAfter([1, 2].map((which) => ({ action: 'remove', which }))), {
    code: 'VALIDATION',
    message: /cannot be combined with other disk changes/,
  });
  const diskless: InstanceRecord = { ...web1, diskTemplate: 'diskless', disks: [] };
  assert.throws(() => disksAfter([{ action: 'add', disk: { sizeBytes: GIB } }], diskless), {
    message: /diskless/,
  });
});

test('a guest is shown what its machine has, until the next one has what the record says', () => {
  const planned = {
    nics: nicsAfter([{ action: 'remove', which: 1 }]),
    disks: disksAfter([{ action: 'add', disk: { sizeBytes: GIB } }]),
  };
  const running = applyParts(web1, planned, web1);
  assert.equal(running.nics.length, 1);
  const seen = (instance: InstanceRecord) => {
    const { nics, disks } = planView({
      ...{ instance, cluster: clusterRecord, device: 'gnt.com.0', revision: 1 },
      ...{ parameters: new Map(), install: null },
    });
    return [nics.length - 1, disks.length];
  };
  assert.deepEqual(seen(running), [2, 3]);
  const again = applyParts(running, { ...planned, nics: [] }, running);
  assert.deepEqual(seen(again), [2, 3]);
  const undone = applyParts(again, { nics: web1.nics, disks: web1.disks }, web1);
  assert.equal(undone.partsOfRun, null);
  assert.deepEqual(seen(applyParts(running, planned, null)), [1, 4]);
});

test('memory and vcpus that were changed are those of the next machine, however often', () => {
  const beparams = { memoryMiB: 1024, vcpus: 4 };
  const parts = { nics: web1.nics, disks: web1.disks };
  const changed = applyParts({ ...web1, beparams }, parts, web1);
  assert.deepEqual(changed.partsOfRun?.beparams, web1.beparams);
  assert.deepEqual(changed.beparams, beparams);
  const again = { ...changed, beparams: { ...beparams, vcpus: 8 } };
  assert.deepEqual(applyParts(again, parts, changed).partsOfRun, changed.partsOfRun);
  assert.equal(applyParts({ ...again, beparams: web1.beparams }, parts, again).partsOfRun, null);
});
