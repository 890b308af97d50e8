import assert from 'node:assert/strict';
import { test } from 'node:test';
import { removeNode } from '../../../../noded/cluster/membership/remove-node.ts';

type Dependencies = Parameters<typeof removeNode>[2];

/** Removes a node of three, seen from `own`. `lost` has an instance. @returns the calls */
async function remove(name: string, forgetInstances = false): Promise<readonly string[]> {
  const calls: string[] = [];
  const call =
    (kind: string) =>
    (...given: unknown[]) => {
      calls.push([kind, ...given].join(' '));
      return Promise.resolve();
    };
  const dependencies = {
    nodeName: 'own',
    nodes: { names: () => Promise.resolve(['own', 'lost', 'empty']), remove: call('remove') },
    instances: {
      forget: call('forget'),
      departedFrom: () => Promise.resolve(['d']),
      forgetDeparture: call('forgetDeparture'),
    },
    index: {
      list: () =>
        Promise.resolve([
          { uuid: 'a', name: 'web', primaryNode: 'lost' },
          { uuid: 'b', name: 'db', primaryNode: 'own' },
        ]),
    },
    membership: { requireMember: () => undefined },
    ...{ peers: null, clock: { now: () => 9 }, failJobsOf: call('failJobsOf') },
  } as unknown as Dependencies;
  await removeNode(name, { forgetInstances }, dependencies);
  return calls;
}

test('a node is removed with its departures and jobs, and with its instances only if told so', async () => {
  const always = (name: string) => [
    ...[`forgetDeparture d ${name}`, `failJobsOf ${name}`, `remove ${name} 9`],
  ];
  assert.deepEqual(await remove('empty'), always('empty'));
  assert.deepEqual(await remove('lost', true), ['forget a lost', ...always('lost')]);
});

test('an unknown node, the own node and a node with instances are refused', async () => {
  await assert.rejects(remove('nosuch'), { code: 'NODE_NOT_FOUND' });
  await assert.rejects(remove('own', true), { code: 'CONFLICT' });
  await assert.rejects(remove('lost'), { code: 'CONFLICT', details: { name: 'lost' } });
});
