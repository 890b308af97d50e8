import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeUsers } from '#shared/contract/appliance-choice.ts';
import { chooseAppliance } from '../../../../noded/instances/record/choose-appliance.ts';

const os = { name: 'debian', appliance: 'of-os' };
const variant = { name: 'debian+trixie', appliance: 'of-variant' };
const silent = { name: 'debian+bookworm' };
const cluster = { appliance: 'of-cluster' };

test('the instance is heard before the variant, the OS, the cluster, and then nobody', () => {
  const own = { appliance: 'own' };
  const none = { appliance: null };
  for (const [instance, layers, ofCluster, name, source] of [
    [own, [os, variant], cluster, 'own', 'instance'],
    [none, [os, variant], cluster, 'of-variant', 'os debian+trixie'],
    [none, [os, silent], cluster, 'of-os', 'os debian'],
    [none, [silent], cluster, 'of-cluster', 'cluster'],
    [none, [], {}, 'built', 'default'],
  ] as const)
    assert.deepEqual(chooseAppliance(instance, layers, ofCluster), { name, source });
});

test('the built one can be meant, over what the cluster says', () => {
  const chosen = chooseAppliance({ appliance: null }, [{ ...os, appliance: 'built' }], cluster);
  assert.deepEqual(chosen, { name: 'built', source: 'os debian' });
});

test('who uses one is told in a line, however many they are', () => {
  const users = {
    cluster: true,
    operatingSystems: ['debian'],
    instances: ['a', 'b', 'c', 'd', 'e'],
  };
  assert.equal(describeUsers(users), 'the cluster; OS debian; instance a, b, c and 2 more');
});
