import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { channelIp } from '#shared/contract/primitives.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createInstanceRepository } from '../../../noded/records/instance-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { nic, openStore, plan, repositoryOf } from './repository-lab.ts';

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
