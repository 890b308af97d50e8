import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import type { Store } from '#shared/store/store.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { silentLogger } from '#shared/log/log.ts';
import {
  createInstanceRepository,
  type InstanceRepository,
} from '../../../noded/records/instance-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { nic, openStore, plan, repositoryOf } from './repository-lab.ts';

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

test('an instance that is renamed while it is removed leaves no claim behind', async (t) => {
  const store = openStore(t);
  const repository = repositoryOf(store);
  const web1 = await repository.create(plan('web1'));
  /** Renames between what the removal reads and what it writes. */
  let isRenamed = false;
  const racing = createInstanceRepository(
    {
      ...store,
      commit: async (writes) => {
        if (!isRenamed) {
          isRenamed = true;
          await repository.rename(web1.uuid, 'web2');
        }
        return store.commit(writes);
      },
    },
    new ManualClock(),
    createRecordProblems(silentLogger),
  );
  await racing.remove(web1.uuid);
  for (const collection of ['instances', 'claim-name', 'claim-ip', 'claim-mac'])
    assert.deepEqual(await store.list(collection), [], collection);
});

/** An instance whose claims are all others' by now: the store lost some and kept its record. */
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
    message: /02:00:00:00:00:0b is in use by another instance/,
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
  // As a store has it that lost the claim.
  await repository.update(web1.uuid, () => changed ?? web1);
  await assert.rejects(takeBack(), { code: 'CONFLICT', message: /in use by another instance/ });
});

test('a renaming that is repeated, since nobody knows of the first, is one', async (t) => {
  const store = openStore(t);
  const repository = repositoryOf(store);
  const { uuid } = await repository.create(plan('web1'));
  await repository.rename(uuid, 'web2');
  assert.equal((await repository.rename(uuid, 'web2')).name, 'web2');
  assert.equal((await repository.findByName('web2')).uuid, uuid);
});
