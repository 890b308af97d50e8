import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import type { Store } from '#shared/store/store.ts';
import type { InstanceRepository } from '../../../noded/records/instance-repository.ts';
import { ENGINES, nic, openStore, plan, repositoryOf } from './repository-lab.ts';

test('a MAC that was drawn and is taken is drawn again, one that was given is not', async (t) => {
  const repository = repositoryOf(openStore(t));
  const mac = 'aa:00:00:12:34:56';
  const drawnMacs = new Set([mac]);
  const auto = { nics: [{ mode: 'user' as const }] };
  await repository.create(plan('web1', auto), { drawnMacs });
  const web2 = await repository.create(plan('web2', auto), { drawnMacs });
  assert.match(web2.nics[0]?.mac ?? '', /^aa:00:00:/);
  assert.notEqual(web2.nics[0]?.mac, mac);
  await assert.rejects(repository.create(plan('web3', { nics: nic(mac) })), { code: 'CONFLICT' });
});

test('a new address among many that are taken is found without asking for all of them', async (t) => {
  const store = openStore(t);
  const take = (network: string, from: number, to: number): Promise<unknown> =>
    store.commit(
      Array.from({ length: to - from }, (_, index) => ({
        ...{ collection: 'claim-ip', id: `${network}.${from + index}` },
        ...{ expected: 'absent' as const, value: randomUUID() },
      })),
    );
  let asked = 0;
  const ids: Store['ids'] = (collection) => {
    asked += 1;
    return store.ids(collection);
  };
  const repository = repositoryOf({ ...store, ids });
  const give = async (name: string, last: number): Promise<string> => {
    const nics = nic(`aa:00:00:00:00:0${last}`);
    return (await repository.create(plan(name, { nics }))).channel.ip;
  };
  await take('169.254.1', 0, 40);
  await take('169.254.1', 41, 80);
  assert.deepEqual(
    [await give('web1', 1), await give('web2', 2)],
    ['169.254.1.40', '169.254.1.80'],
  );
  assert.equal(asked, 0);
  await take('169.254.1', 81, 256);
  await take('169.254.2', 0, 256);
  assert.equal(await give('web3', 3), '169.254.3.0');
});

/**
 * Returns a repository whose work another one interrupts, once.
 * @param where before its first commit, or after its first reading
 */
function interrupted(
  store: Store,
  where: 'commit' | 'read',
  work: () => Promise<unknown>,
): InstanceRepository {
  let isBegun = false;
  const once = async (): Promise<void> => {
    if (isBegun) return;
    isBegun = true;
    await work();
  };
  const racing: Store = {
    ...store,
    get: async (collection, id) => {
      const found = await store.get(collection, id);
      if (where === 'read') await once();
      return found;
    },
    commit: async (writes) => {
      if (where === 'commit') await once();
      return store.commit(writes);
    },
  };
  return repositoryOf(racing);
}

const claimed = async (store: Store): Promise<number> => {
  const all = ['claim-name', 'claim-ip', 'claim-mac'].map((collection) => store.ids(collection));
  return (await Promise.all(all)).flat().length;
};

for (const [engine, open] of Object.entries(ENGINES)) {
  for (const where of ['read', 'commit'] as const) {
    test(`${engine}: one that is renamed while it is removed leaves no claim (${where})`, async (t) => {
      const store = await open(t);
      const repository = repositoryOf(store);
      const web1 = await repository.create(plan('web1'));
      await interrupted(store, where, () => repository.rename(web1.uuid, 'web2')).remove(web1.uuid);
      assert.deepEqual([await store.list('instances'), await claimed(store)], [[], 0]);
    });

    test(`${engine}: one that is removed while it is renamed leaves no claim (${where})`, async (t) => {
      const store = await open(t);
      const repository = repositoryOf(store);
      const web1 = await repository.create(plan('web1'));
      const renaming = interrupted(store, where, () => repository.remove(web1.uuid));
      await assert.rejects(renaming.rename(web1.uuid, 'web2'), { code: 'INSTANCE_NOT_FOUND' });
      assert.deepEqual([await store.list('instances'), await claimed(store)], [[], 0]);
      await repository.create(plan('web2'));
    });

    test(`${engine}: a record that comes back while its claims are dropped has them (${where})`, async (t) => {
      const store = await open(t);
      const repository = repositoryOf(store);
      const web1 = await repository.create(plan('web1'));
      const all = await claimed(store);
      await store.commit([
        { collection: 'instances', id: web1.uuid, expected: 'any', value: undefined },
      ]);
      const restore = (): Promise<unknown> => repository.restore(web1);
      await interrupted(store, where, restore).dropClaims(web1.uuid);
      assert.equal((await repository.findByName('web1')).uuid, web1.uuid);
      assert.equal(await claimed(store), all);
    });
  }
}

/**
 * Creates an instance whose claims all belong to others now: the store lost them and kept its
 * record.
 */
async function withLostClaims(t: TestContext): Promise<{
  readonly store: Store;
  readonly repository: InstanceRepository;
  readonly uuid: string;
}> {
  const store = openStore(t);
  const repository = repositoryOf(store);
  const { uuid, name, channel, nics } = await repository.create(
    plan('web1', { nics: nic('aa:00:00:00:00:09') }),
  );
  const lost = [
    ['claim-name', name],
    ['claim-ip', channel.ip],
    ['claim-mac', channel.mac],
    ['claim-mac', nics[0]?.mac ?? ''],
  ] as const;
  await store.commit(
    lost.map(([collection, id]) => ({ collection, id, expected: 'any', value: 'another' })),
  );
  return { store, repository, uuid };
}

const otherClaims = async (store: Store): Promise<number> => {
  const found = await Promise.all(
    ['claim-name', 'claim-ip', 'claim-mac'].map((collection) => store.list(collection)),
  );
  return found.flat().filter(({ value }) => value === 'another').length;
};

test("removing an instance drops no claim that is another's by now", async (t) => {
  const { store, repository, uuid } = await withLostClaims(t);
  await repository.remove(uuid);
  assert.equal(await otherClaims(store), 4);
  assert.deepEqual(await store.list('instances'), []);
});

test("renaming an instance drops no claim that is another's by now", async (t) => {
  const { store, repository, uuid } = await withLostClaims(t);
  await repository.rename(uuid, 'web2');
  assert.equal(await otherClaims(store), 4);
});

test('NICs that come and go take their MACs along, in one commit', async (t) => {
  const repository = repositoryOf(openStore(t));
  const nic = (mac: string) => ({
    ...{ uuid: randomUUID(), mac, mode: 'user' as const },
    ...{ link: null, name: null, ip: null, network: null },
  });
  const [web1, web2] = [
    await repository.create(plan('web1')),
    await repository.create(plan('web2')),
  ];
  const give = (uuid: string, ...macs: string[]) =>
    repository.update(uuid, (current) => ({ ...current, nics: macs.map(nic) }));
  const [a, b] = ['02:00:00:00:00:0a', '02:00:00:00:00:0b'];
  await give(web1.uuid, a, b);
  await assert.rejects(give(web2.uuid, b), {
    code: 'CONFLICT',
    message: /02:00:00:00:00:0b belongs to another instance/,
  });
  assert.deepEqual((await repository.findByUuid(web2.uuid))?.nics, web2.nics);
  await give(web1.uuid, a);
  await give(web2.uuid, b);
  await repository.remove(web1.uuid);
  await give(web2.uuid, a, b);
});

test('a MAC that an instance gave up is free when its machine is another', async (t) => {
  const store = openStore(t);
  const repository = repositoryOf(store);
  const [old, next] = ['02:00:00:00:00:0a', '02:00:00:00:00:0b'];
  const web1 = await repository.create(plan('web1', { nics: nic(old) }));
  await repository.update(web1.uuid, (current) => ({
    ...current,
    nics: current.nics.map((each) => ({ ...each, mac: next })),
    partsOfRun: { nics: current.nics, disks: current.disks },
  }));
  const take = (name: string) => repository.create(plan(name, { nics: nic(old) }));
  await assert.rejects(take('web2'), { code: 'CONFLICT' });
  const takeBack = () => repository.update(web1.uuid, () => web1);
  const changed = await repository.findByUuid(web1.uuid);
  await takeBack();
  await repository.update(web1.uuid, () => changed ?? web1);
  await repository.update(web1.uuid, (current) => ({ ...current, partsOfRun: null }));
  const web2 = await take('web2');
  const owners = await store.list('claim-mac');
  assert.deepEqual(
    [old, next].map((mac) => owners.find(({ id }) => id === mac)?.value),
    [web2.uuid, web1.uuid],
  );
  // The store has lost the claim.
  await repository.update(web1.uuid, () => changed ?? web1);
  await assert.rejects(takeBack(), { code: 'CONFLICT', message: /belongs to another instance/ });
});

test('a renaming that is repeated, since nobody knows of the first, is one', async (t) => {
  const store = openStore(t);
  const repository = repositoryOf(store);
  const { uuid } = await repository.create(plan('web1'));
  await repository.rename(uuid, 'web2');
  assert.equal((await repository.rename(uuid, 'web2')).name, 'web2');
  assert.equal((await repository.findByName('web2')).uuid, uuid);
});
