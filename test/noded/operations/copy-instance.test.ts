import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ANY_ADDRESS } from '#shared/contract/network.ts';
import { NO_PAST } from '../../../noded/instances/record/plan-record.ts';
import { copyInstanceHandler, planCopy } from '../../../noded/operations/copy-instance.ts';
import { instanceRecord } from '../support/records.ts';
import { createOperationLab, type World } from './operation-lab.ts';

const web1 = instanceRecord(
  {
    name: 'web1',
    communication: true,
    nics: [{ mac: '02:00:00:00:00:01', mode: 'user', name: 'front' }],
    disks: [{ sizeBytes: 512, name: 'root' }],
    osParametersPrivate: { licence: 'A' },
    osParametersSecret: { password: 'x' },
    tags: ['blue'],
  },
  {
    ...{ adminState: 'up', installState: 'installed' },
    hostKeys: { instanceId: 'i', keys: ['k'] },
    partsOfRun: { nics: [], disks: [] },
  },
);

test('a copy is another machine: nothing that tells one from another is the same', () => {
  const copy = planCopy(web1, 'web2');
  const identityOf = ({ uuid, instanceId, nics, disks }: typeof web1 | typeof copy) => [
    ...[uuid, instanceId, nics[0]?.uuid, nics[0]?.mac, disks[0]?.uuid],
  ];
  const [old, own] = [identityOf(web1), identityOf(copy)];
  assert.equal(new Set([...old, ...own]).size, old.length + own.length);
  assert.notEqual(copy.channelNicUuid, web1.channel.uuid);
});

test('a copy is what the instance is, stopped, with nothing that its guest has said', () => {
  const copy = planCopy(web1, 'web2');
  const { name, osParametersPrivate, secretNames, tags, installState, adminState } = copy;
  assert.deepEqual([name, adminState, installState], ['web2', 'down', 'installed']);
  assert.deepEqual(
    [osParametersPrivate, secretNames, tags],
    [{ licence: 'A' }, ['password'], ['blue']],
  );
  for (const [key, value] of Object.entries(NO_PAST))
    assert.deepEqual(copy[key as keyof typeof NO_PAST], value, key);
  assert.deepEqual([copy.nics[0]?.name, copy.disks[0]?.sizeBytes], ['front', 512]);
});

const nic = web1.nics[0] ?? assert.fail();
const network = {
  addresses: ['10.9.0.5/24'],
  routes: [],
  dns: [],
} as unknown as typeof nic.network;
const inNetwork = { ...nic, mac: 'aa:bb:cc:01:02:03', networkName: 'lan', ip: '10.9.0.5', network };

test('in a network of the cluster, a copy keeps the MAC prefix and asks for an address of its own', () => {
  const [pooled, own] = planCopy({ ...web1, nics: [inNetwork, { ...nic, network }] }, 'web2').nics;
  assert.match(pooled?.mac ?? '', /^aa:bb:cc:/);
  assert.notEqual(pooled?.mac, inNetwork.mac);
  assert.deepEqual([pooled?.ip, pooled?.network], [ANY_ADDRESS, null]);
  // Only the guest's administrator knows the addresses outside of such a network.
  assert.deepEqual(own?.network, network);
});

test('a copy of shared disks is local to the node, and others keep their template', () => {
  const templateOf = (diskTemplate: typeof web1.diskTemplate) =>
    planCopy({ ...web1, diskTemplate }, 'web2').diskTemplate;
  assert.deepEqual([templateOf('sharedfile'), templateOf('plain')], ['file', 'plain']);
});

const copy = (world: World = {}, newName = 'web2', record = web1) => {
  const lab = createOperationLab(record, world);
  const input = { opcode: 'INSTANCE_COPY', name: 'web1', newName } as const;
  return { ...lab, ended: lab.run(copyInstanceHandler, input) };
};

test('a copy is checked before its disks are copied, and exists from the commit of its record', async () => {
  const { ended, steps, lines, record } = copy();
  const result = await ended;
  assert.deepEqual(result, { name: 'web2', uuid: record()?.uuid });
  assert.deepEqual(steps, [
    ...['runner.checkDisksUnused', 'disks.checkCopy', 'execute', 'disks.copy'],
    'instances.create',
  ]);
  assert.ok(lines.some((line) => /^warn: secrets are not copied. Supply password:/.test(line)));
});

test('a copy with fixed addresses says which ones it shares with the original', async () => {
  const warningOf = async (nics: typeof web1.nics): Promise<string | undefined> => {
    const { ended, lines } = copy({}, 'web2', { ...web1, nics, secretNames: [] });
    await ended;
    return lines.find((line) => line.startsWith('warn: '));
  };
  assert.match((await warningOf([{ ...nic, network }])) ?? '', /10\.9\.0\.5\/24/);
  assert.equal(await warningOf([inNetwork]), undefined);
});

for (const [what, world, newName, changes, code] of [
  ['of a running instance', { runner: { isRunning: () => true } }, 'web2', {}, 'INSTANCE_STATE'],
  ['with a taken name', {}, 'web1', {}, 'INSTANCE_EXISTS'],
  ['of a failed installation', {}, 'web2', { installState: 'failed' }, 'INSTANCE_STATE'],
  ['of an unfinished one', {}, 'web2', { installState: 'installing' }, 'INSTANCE_STATE'],
  [
    'on a drained node',
    { nodes: { flagsOf: async () => ({ drained: true, offline: false }) } },
    ...(['web2', {}, 'NODE_DRAINED'] as const),
  ],
] as const) {
  test(`a copy ${what} is refused before anything is copied`, async () => {
    const { ended, steps } = copy(world, newName, { ...web1, ...changes });
    await assert.rejects(ended, { code });
    assert.ok(!steps.includes('execute'));
  });
}
