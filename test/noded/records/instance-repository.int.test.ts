import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { bootEnv } from '#shared/contract/boot-env.ts';
import { channelIp } from '#shared/contract/primitives.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import type { Store } from '#shared/store/store.ts';
import {
  createClusterRepository,
  type ClusterRepository,
} from '../../../noded/records/cluster-repository.ts';
import {
  createInstanceRepository,
  type InstanceRepository,
  type NewInstance,
} from '../../../noded/records/instance-repository.ts';
import { planNewInstance } from '../../../noded/instances/plan-record.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { createOpcode } from '../support/opcodes.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { silentLogger } from '#shared/log/log.ts';

let dir = '';
let stores = 0;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-instances-'));
});
after(() => rm(dir, { recursive: true, force: true }));

function repositoryOf(store: Store): InstanceRepository {
  return createInstanceRepository(store, new ManualClock(), createRecordProblems(silentLogger));
}

function openStore(t: TestContext): Store {
  stores += 1;
  const store = createSqliteStore({ path: join(dir, `store-${stores}.sqlite`) });
  t.after(() => store.close());
  return store;
}

function plan(
  name: string,
  input: Parameters<typeof createOpcode>[0] = {},
  uuid = randomUUID,
): NewInstance {
  return planNewInstance(createOpcode({ name, ...input }), {
    nodeName: 'node1',
    newUuid: uuid,
    newMac: () => 'aa:00:00:12:34:56',
  });
}

const nic = (mac: string) => [{ mac, mode: 'user' as const }];

test('instances created at the same time by two nodes never share an address or a MAC', async (t) => {
  const store = openStore(t);
  const clock = new ManualClock();
  const nodes = [
    createInstanceRepository(store, clock, createRecordProblems(silentLogger)),
    createInstanceRepository(store, clock, createRecordProblems(silentLogger)),
  ];
  const created = await Promise.all(
    Array.from({ length: 40 }, (_, index) => {
      const repository = nodes[index % 2];
      assert.ok(repository);
      return repository.create(plan(`web${index}`));
    }),
  );
  assert.equal(new Set(created.map(({ channel }) => channel.ip)).size, 40);
  assert.equal(new Set(created.map(({ channel }) => channel.mac)).size, 40);
  for (const { channel } of created) assert.ok(channelIp.safeParse(channel.ip).success, channel.ip);
});

test('of two that ask for one name at the same time, one gets it and the other is told', async (t) => {
  const store = openStore(t);
  const repository = repositoryOf(store);
  const outcomes = await Promise.allSettled([
    repository.create(plan('web1')),
    repository.create(plan('web1')),
  ]);
  const failures = outcomes.filter((outcome) => outcome.status === 'rejected');
  assert.equal(failures.length, 1);
  assert.equal((failures[0]?.reason as { code: string }).code, 'INSTANCE_EXISTS');
  assert.equal((await repository.list()).length, 1);
  assert.equal((await store.list('claim-ip')).length, 1, 'the loser holds no address');
});

test('a MAC that another instance has is refused and leaves no claim', async (t) => {
  const store = openStore(t);
  const repository = repositoryOf(store);
  await repository.create(plan('web1', { nics: nic('02:00:00:00:00:01') }));
  const second = repository.create(plan('web2', { nics: nic('02:00:00:00:00:01') }));
  await assert.rejects(second, { code: 'CONFLICT', message: /02:00:00:00:00:01/ });
  await assert.rejects(repository.findByName('web2'), { code: 'INSTANCE_NOT_FOUND' });
  assert.equal((await store.list('claim-name')).length, 1);
});

test('removing an instance gives its name and MACs back, its address comes last', async (t) => {
  const store = openStore(t);
  const repository = repositoryOf(store);
  const web1 = await repository.create(plan('web1', { nics: nic('02:00:00:00:00:01') }));
  await repository.remove(web1.uuid);
  for (const claims of ['claim-name', 'claim-ip', 'claim-mac'])
    assert.deepEqual(await store.list(claims), [], claims);
  const again = await repository.create(plan('web1', { nics: nic('02:00:00:00:00:01') }));
  assert.notEqual(again.channel.ip, web1.channel.ip);
  await repository.remove(randomUUID());
});

test('renaming moves the name, keeps everything else and refuses a taken one', async (t) => {
  const store = openStore(t);
  const repository = repositoryOf(store);
  const web1 = await repository.create(plan('web1'));
  await repository.create(plan('web2'));
  await assert.rejects(repository.rename(web1.uuid, 'web2'), { code: 'INSTANCE_EXISTS' });
  assert.equal((await repository.findByName('web1')).uuid, web1.uuid);
  const renamed = await repository.rename(web1.uuid, 'web3');
  assert.deepEqual({ ...renamed, name: 'web1', serialNo: 1 }, web1);
  await assert.rejects(repository.findByName('web1'), { code: 'INSTANCE_NOT_FOUND' });
  assert.equal((await repository.findByName('web3')).uuid, web1.uuid);
  await repository.create(plan('web1'));
});

test("the first labels of a name are enough where they are one instance's alone", async (t) => {
  const repository = repositoryOf(openStore(t));
  const mac = (last: number) => ({ nics: nic(`02:00:00:00:00:0${last}`) });
  await repository.create(plan('web1.a.example', mac(1)));
  await repository.create(plan('web10.a.example', mac(2)));
  await repository.create(plan('db.a.example', mac(3)));
  await repository.create(plan('db.b.example', mac(4)));
  await repository.create(plan('db.b', mac(5)));
  assert.equal(await repository.expandName('web1'), 'web1.a.example');
  assert.equal(await repository.expandName('web10.a'), 'web10.a.example');
  assert.equal(await repository.expandName('db.b'), 'db.b', 'the whole name comes first');
  await assert.rejects(repository.expandName('db'), {
    code: 'VALIDATION',
    message: /db\.a\.example/,
  });
  for (const none of ['web', 'example', 'web1.a.example.', '', '*'])
    await assert.rejects(repository.expandName(none), { code: 'INSTANCE_NOT_FOUND' });
});

test('changes at the same time are all made, none is overwritten', async (t) => {
  const repository = repositoryOf(openStore(t));
  const { uuid } = await repository.create(plan('web1'));
  await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      repository.update(uuid, (instance) => ({
        ...instance,
        metadata: { ...instance.metadata, [`key${index}`]: 'x' },
      })),
    ),
  );
  const found = await repository.findByUuid(uuid);
  assert.equal(Object.keys(found?.metadata ?? {}).length, 20);
  assert.equal(found?.serialNo, 21);
});

test('changing or finding what is not there says so', async (t) => {
  const repository = repositoryOf(openStore(t));
  await assert.rejects(
    repository.update(randomUUID(), (instance) => instance),
    { code: 'INSTANCE_NOT_FOUND' },
  );
  await assert.rejects(repository.findByName('web1'), {
    code: 'INSTANCE_NOT_FOUND',
    message: /'web1'/,
  });
  assert.equal(await repository.findByUuid(randomUUID()), undefined);
});

test('no secret value is anywhere in the store', async (t) => {
  const store = openStore(t);
  const repository = repositoryOf(store);
  await repository.create(
    plan('web1', {
      osParametersSecret: { rootpw: 'TOP-SECRET' },
      personalizationPackage: 'https://example.com/p.tar.gz',
      personalizationUser: 'PACKAGE-USER',
      personalizationPassword: 'PACKAGE-PASSWORD',
    }),
  );
  const stored = JSON.stringify(await store.list('instances'));
  assert.match(stored, /"secretNames":\["rootpw"\]/);
  for (const value of ['TOP-SECRET', 'PACKAGE-USER', 'PACKAGE-PASSWORD'])
    assert.ok(!stored.includes(value), value);
});

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
    // What was lost stands in the way of no other change.
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
