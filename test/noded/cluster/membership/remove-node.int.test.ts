import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { removeNode } from '../../../../noded/cluster/membership/remove-node.ts';
import type { IndexedInstance } from '../../../../noded/records/instance-index.ts';
import { SOURCE, TARGET } from '../../support/moving-nodes.ts';
import { type MovingWorld, useMovingWorlds } from '../../support/moving-worlds.ts';

const worlds = useMovingWorlds();

/** From the target, which sees the instances as they were when it was asked. */
async function removeSource({ target, instance }: MovingWorld): Promise<void> {
  await removeNode(
    SOURCE,
    { forgetInstances: true },
    {
      ...{ nodeName: TARGET, instances: target.instances, peers: null, clock: systemClock },
      nodes: {
        names: () => Promise.resolve([SOURCE, TARGET]),
        remove: () => Promise.resolve(),
      } as never,
      index: { list: () => Promise.resolve([instance as unknown as IndexedInstance]) },
      membership: { requireMember: () => undefined },
      failJobsOf: () => Promise.resolve(),
    },
  );
}

test('what is lost with its node is forgotten, and nothing is noted of it any more', async (t) => {
  const world = await worlds.open(t);
  const { source, target, instance } = world;
  // There and back: both have given it away.
  for (const primaryNode of [TARGET, SOURCE])
    await source.instances.update(instance.uuid, (one) => ({ ...one, primaryNode }));
  await removeSource(world);
  assert.equal(await target.instances.findByUuid(instance.uuid), undefined);
  for (const node of [SOURCE, TARGET])
    assert.deepEqual(await target.instances.departedFrom(node), [], node);
});

test('what was taken by another node, while its own was being removed, stays', async (t) => {
  const world = await worlds.open(t);
  const { target, instance } = world;
  const taken = (one: InstanceRecord): InstanceRecord => ({ ...one, primaryNode: TARGET });
  await target.instances.update(instance.uuid, taken);
  await removeSource(world);
  const record = await target.instances.findByUuid(instance.uuid);
  assert.equal(record?.primaryNode, TARGET);
});
