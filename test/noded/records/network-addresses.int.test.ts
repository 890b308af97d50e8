import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NetworkRecord } from '#shared/contract/network.ts';
import type { Store } from '#shared/store/store.ts';
import { createClusterRepository } from '../../../noded/records/cluster-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openStore, plan, repositoryOf } from './repository-lab.ts';

const LAN: NetworkRecord = {
  ...{ schema: 1, name: 'lan', uuid: '11111111-1111-4111-8111-111111111111' },
  ...{ network: '10.9.0.0/24', gateway: '10.9.0.1', macPrefix: null, reserved: [], tags: [] },
  connections: { node1: { mode: 'nat' } },
};

test('an address that is reserved while an instance takes it is refused to one of the two', async (t) => {
  const store = openStore(t);
  const clusters = createClusterRepository(store, new ManualClock());
  await clusters.createNetwork(LAN);
  let between: (() => Promise<unknown>) | undefined;
  const interrupted: Store = {
    ...store,
    get: (...asked) => store.get(...asked),
    ids: (...asked) => store.ids(...asked),
    commit: async (writes) => {
      const first = between;
      between = undefined;
      await first?.();
      return store.commit(writes);
    },
  };
  const repository = repositoryOf(interrupted);
  const lanNic = (ip: string) =>
    [{ mac: 'auto', mode: 'bridged', networkName: 'lan', ip }] as const;
  const created = await repository.create(plan('web', { nics: [...lanNic('10.9.0.5')] }));
  const reserve = (ip: string) => (): Promise<unknown> =>
    clusters.updateNetwork('lan', (network) => ({ ...network, reserved: [ip] }));

  between = reserve('10.9.0.6');
  await assert.rejects(
    repository.update(created.uuid, (record) => ({
      ...record,
      nics: record.nics.map((one) => ({ ...one, ip: '10.9.0.6' })),
    })),
    /10\.9\.0\.6 is reserved in network 'lan'/,
  );
  between = reserve('10.9.0.7');
  const another = plan('db', { nics: [...lanNic('10.9.0.7')] });
  await assert.rejects(
    repository.create({
      ...another,
      nics: another.nics.map((one) => ({ ...one, mac: 'aa:00:00:12:34:57' })),
    }),
    /10\.9\.0\.7 is reserved in network 'lan'/,
  );
});

test('of two nodes that take addresses of a network at once, no two get one', async (t) => {
  const store = openStore(t);
  await createClusterRepository(store, new ManualClock()).createNetwork(LAN);
  const nodes = [repositoryOf(store), repositoryOf(store)];
  const created = await Promise.all(
    Array.from({ length: 20 }, (_, index) => {
      const planned = plan(`web${index}`, {
        nics: [{ mac: 'auto', mode: 'bridged', networkName: 'lan', ip: 'pool' }],
      });
      const mac = `aa:00:00:00:01:${index.toString(16).padStart(2, '0')}`;
      const own = { ...planned, nics: planned.nics.map((one) => ({ ...one, mac })) };
      const repository = nodes[index % 2];
      assert.ok(repository);
      return repository.create(own);
    }),
  );
  assert.equal(new Set(created.map(({ nics }) => nics[0]?.ip)).size, 20);
});
