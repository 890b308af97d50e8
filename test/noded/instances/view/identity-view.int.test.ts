import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { instanceView } from '#shared/contract/view.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createIdentities } from '../../../../noded/instances/identity/identities.ts';
import { planNewInstance } from '../../../../noded/instances/record/plan-record.ts';
import { createViews } from '../../../../noded/instances/view/views.ts';
import { createClusterRepository } from '../../../../noded/records/cluster-repository.ts';
import { openStore, repositoryOf } from '../../records/repository-lab.ts';
import { createLabBootViews } from '../../support/lab-boot-views.ts';
import { createLabLifecycles } from '../../support/lab-lifecycles.ts';
import { createOpcode } from '../../support/opcodes.ts';

test('the view of a running guest has its signed document, while identities are on', async (t) => {
  const store = openStore(t);
  const clusters = createClusterRepository(store, systemClock);
  await clusters.ensure();
  await clusters.ensureIdentityKeys();
  const instances = repositoryOf(store);
  const { uuid } = await instances.create(
    planNewInstance(createOpcode({ communication: true }), {
      nodeName: 'node1',
      newUuid: randomUUID,
      newMac: () => 'aa:00:00:00:00:01',
    }),
  );
  const identities = createIdentities({
    ...{ clusters, instances, clock: systemClock, logger: silentLogger },
    hasChannel: () => true,
    audit: { append: () => Promise.resolve() },
  });
  const views = createViews(
    instances,
    clusters,
    createLabLifecycles(),
    createLabBootViews(clusters),
    identities,
  );
  assert.ok(!('identity' in (await views.forRun(uuid, 'gnt.com.0', 1))), 'off by default');
  await clusters.update((cluster) => ({ ...cluster, identity: { policy: 'yes' } }));
  const view = instanceView.parse(await views.forRun(uuid, 'gnt.com.0', 2));
  assert.match(view.identity?.ec2?.document ?? '', new RegExp(view.instanceId));
  assert.match(view.identity?.ec2?.pkcs7 ?? '', /^[\w+/=\n]+$/);
});
