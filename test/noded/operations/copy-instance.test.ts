import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_PAST } from '../../../noded/instances/record/plan-record.ts';
import { planCopy } from '../../../noded/operations/copy-instance.ts';
import { instanceRecord } from '../support/records.ts';

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
