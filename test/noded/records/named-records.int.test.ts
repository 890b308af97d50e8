import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bootEnv } from '#shared/contract/boot-env.ts';
import {
  createClusterRepository,
  type ClusterRepository,
} from '../../../noded/records/cluster-repository.ts';
import type { NewInstance } from '../../../noded/records/instance-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openStore, plan, repositoryOf } from './repository-lab.ts';

interface NamedLab {
  readonly code: string;
  readonly named: Partial<Pick<NewInstance, 'profiles' | 'bootEnv'>>;
  readonly make: (clusters: ClusterRepository) => Promise<unknown>;
  readonly remove: (clusters: ClusterRepository, refuseUsed: () => Promise<void>) => Promise<void>;
}
const NAMED: Readonly<Record<string, NamedLab>> = {
  profile: {
    code: 'NOT_FOUND',
    named: { profiles: ['web'] },
    make: (clusters) => clusters.updateProfile('web', (profile) => profile),
    remove: (clusters, refuseUsed) => clusters.removeProfile('web', refuseUsed),
  },
  'boot environment': {
    code: 'BOOTENV_NOT_FOUND',
    named: { bootEnv: 'rescue' },
    make: (clusters) =>
      clusters.saveBootContent({
        bootEnvs: [
          bootEnv.parse({
            Name: 'rescue',
            OS: { Name: 'debian-12', SupportedArchitectures: { amd64: { Kernel: 'linux' } } },
            ...{ Loaders: {}, Templates: [] },
          }),
        ],
        templates: [],
        params: [],
      }),
    remove: (clusters, refuseUsed) =>
      clusters.removeBootObject({ kind: 'bootEnv', name: 'rescue' }, refuseUsed),
  },
};

for (const [what, { code, named, make, remove }] of Object.entries(NAMED)) {
  test(`a ${what} that was removed since it was looked up is in no record`, async (t) => {
    const store = openStore(t);
    const repository = repositoryOf(store);
    const clusters = createClusterRepository(store, new ManualClock());
    await assert.rejects(repository.create({ ...plan('web1'), ...named }), { code });
    assert.deepEqual(await store.list('claim-name'), []);
    const web1 = await repository.create(plan('web1'));
    const name = repository.update(web1.uuid, (instance) => ({ ...instance, ...named }));
    await assert.rejects(name, { code });
    await make(clusters);
    await repository.update(web1.uuid, (instance) => ({ ...instance, ...named }));
    await repository.create({ ...plan('web2'), ...named });
    // A lost record does not prevent other changes.
    await remove(clusters, () => Promise.resolve());
    await repository.update(web1.uuid, (instance) => ({ ...instance, tags: ['a'] }));
    assert.deepEqual((await repository.findByName('web1')).tags, ['a']);
  });

  test(`a ${what} that an instance names while it is being removed stays`, async (t) => {
    const store = openStore(t);
    const repository = repositoryOf(store);
    const clusters = createClusterRepository(store, new ManualClock());
    await make(clusters);
    const used = new Error('used');
    let looks = 0;
    const refuseUsed = async (): Promise<void> => {
      const users = await repository.list();
      looks += 1;
      if (users.length > 0) throw used;
      await repository.create({ ...plan('web1'), ...named });
    };
    await assert.rejects(remove(clusters, refuseUsed), used);
    assert.equal(looks, 2);
    await repository.create({ ...plan('web2'), ...named });
  });
}
