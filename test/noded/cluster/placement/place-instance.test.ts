import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HostRoom } from '#shared/contract/host-room.ts';
import { NO_FLAGS, type NodeFlags } from '#shared/contract/node-flags.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { GIB } from '#shared/units/bytes.ts';
import {
  placeInstance,
  type PlacementDependencies,
} from '../../../../noded/cluster/placement/place-instance.ts';
import { createNodeRoom } from '../../../../noded/cluster/placement/node-room.ts';
import { admittedJobs, wantedBy } from '../../../../noded/cluster/placement/admitted-jobs.ts';
import type { ClusterRepository } from '../../../../noded/records/cluster-repository.ts';
import type { IndexedInstance } from '../../../../noded/records/instance-index.ts';
import { UnreachableNode } from '../../../../noded/cluster/peers/ask-peer.ts';
import { type JobService, layerJobs } from '../../../../noded/jobs/job-service.ts';
import { createOpcode } from '../../support/opcodes.ts';

const ROOM: HostRoom = {
  cpus: 4,
  memoryMiB: 4096,
  memoryFreeMiB: 4096,
  diskBytes: 100 * GIB,
  diskFreeBytes: 100 * GIB,
};
const clusters = {
  load: () => Promise.resolve({ tags: [] }),
  listNetworks: () =>
    Promise.resolve([
      {
        ...{ schema: 1, name: 'lan', uuid: '11111111-1111-4111-8111-111111111111', tags: [] },
        ...{ network: '10.9.0.0/24', gateway: '10.9.0.1', macPrefix: null, reserved: [] },
        connections: { two: { mode: 'nat' }, three: { mode: 'nat' } },
      },
    ]),
} as unknown as Pick<ClusterRepository, 'load' | 'listNetworks'>;
const bridged = (networkName: string) =>
  createOpcode({ nics: [{ mac: 'auto', mode: 'bridged', networkName, ip: 'pool' }] });

function dependencies(flags: Record<string, NodeFlags>): PlacementDependencies {
  const [own = ''] = Object.keys(flags);
  const listed = Object.entries(flags).map(([name, one]) => ({ name, flags: one }));
  const told = { state: 'told', running: new Map(), room: ROOM } as const;
  return {
    nodeName: own,
    clusters,
    room: {
      candidate: () =>
        Promise.resolve({ name: own, flags: flags[own] ?? NO_FLAGS, room: ROOM, taken: [] }),
    },
    nodes: { list: () => Promise.resolve(listed) },
    index: { list: () => Promise.resolve([]) },
    elsewhere: { facts: () => Promise.resolve(new Map(listed.map(({ name }) => [name, told]))) },
  };
}

const free = { isBound: false };
const DRAINED = { drained: true, offline: false };
const noRoom = (): AppError => new AppError('NO_ROOM', 'another one was faster');

test('who refuses since its room is gone is passed over, and said with the rest when none is left', async () => {
  const asked: string[] = [];
  const three = dependencies({ one: DRAINED, two: NO_FLAGS, three: NO_FLAGS });
  const node = await placeInstance(
    createOpcode(),
    free,
    (name, placement) => {
      asked.push(name);
      if (asked.length === 1) return Promise.reject(noRoom());
      assert.deepEqual(placement?.slice(1), [
        'not on one: drained',
        'not on three: another one was faster',
      ]);
      return Promise.resolve(name);
    },
    three,
  );
  assert.equal(node, 'two');
  assert.deepEqual(asked, ['three', 'two']);
  const none = placeInstance(createOpcode(), free, () => Promise.reject(noRoom()), three);
  await assert.rejects(none, (error) => {
    assert.ok(isAppError(error, 'NO_ROOM'));
    assert.match(error.message, /one: drained/);
    assert.match(error.message, /two: another one was faster/);
    assert.match(error.message, /three: another one was faster/);
    return true;
  });
});

test('a node on which its network is not connected is not chosen, and said so', async () => {
  const three = dependencies({ one: NO_FLAGS, two: DRAINED, three: NO_FLAGS });
  const place = (networkName: string) =>
    placeInstance(
      bridged(networkName),
      free,
      (node, placement) => Promise.resolve([node, ...(placement ?? []).slice(1)]),
      three,
    );
  assert.deepEqual(await place('lan'), [
    'three',
    "not on one: network 'lan' is not connected there",
    'not on two: drained',
  ]);
  // The job reports the missing network.
  assert.deepEqual((await place('nowhere')).length, 2);
});

test('a chosen node without the bridge hands it on before there is a job', async () => {
  const missing = new AppError('HOST_PREREQUISITE', 'this host has no bridge named "br9"');
  const submitted: string[] = [];
  const own = {
    submit: (opcode: { name: string }) => Promise.resolve(submitted.push(opcode.name)),
  } as unknown as JobService;
  const layer = admittedJobs({
    ...{ room: nodeRoom(), clusters, osRegistry: { find: assert.fail } },
    nicTaps: { check: () => Promise.reject(missing) },
  });
  const jobs = layerJobs([layer], own);
  await assert.rejects(jobs.submit(bridged('lan'), { placement: ['chosen'] }), (error) => {
    return isAppError(error, 'NO_ROOM') && error.message === missing.message;
  });
  assert.deepEqual(submitted, []);
});

test('who is bound to instances is told nothing of the hosts', async () => {
  const two = dependencies({ one: DRAINED, two: NO_FLAGS });
  const lines = await placeInstance(
    createOpcode(),
    { isBound: true },
    (_, placement) => Promise.resolve(placement),
    two,
  );
  assert.deepEqual(lines, ['placed on two']);
  await assert.rejects(
    placeInstance(createOpcode(), { isBound: true }, () => Promise.reject(noRoom()), two),
    (error) => isAppError(error, 'NO_ROOM') && !JSON.stringify(error).includes('drained'),
  );
});

test('what only the asked node has keeps an instance there, and a node alone is not judged', async () => {
  const made = (opcode: Parameters<typeof createOpcode>[0], flags: Record<string, NodeFlags>) =>
    placeInstance(
      createOpcode(opcode),
      free,
      (node, placement) => Promise.resolve([node, placement]),
      dependencies(flags),
    );
  const two = { one: DRAINED, two: NO_FLAGS };
  for (const given of [
    { osImage: '/srv/image.raw' },
    { hvparams: { kernel_path: '/boot/vmlinuz' } },
    { importFrom: 'web1.example.com' },
    { personalizationPackage: '/srv/package.tar' },
    { appliance: 'mine' },
  ])
    assert.deepEqual(await made(given, two), ['one', undefined]);
  assert.deepEqual(await made({ beparams: { memoryMiB: 8192 } }, { one: NO_FLAGS }), [
    'one',
    undefined,
  ]);
});

test('what broke off in the middle is not asked for again elsewhere; what nobody took is', async () => {
  const two = dependencies({ one: NO_FLAGS, two: NO_FLAGS });
  const asked: string[] = [];
  const first = (error: AppError) =>
    placeInstance(
      createOpcode(),
      free,
      (node) => {
        asked.push(node);
        return asked.length === 1 ? Promise.reject(error) : Promise.resolve(node);
      },
      two,
    );
  await assert.rejects(first(new AppError('NODE_UNREACHABLE', 'broke off')), /broke off/);
  assert.equal(asked.length, 1);
  asked.length = 0;
  assert.equal(await first(new UnreachableNode('one', { isThere: false })), 'two');
});

test('an OS that no node has is the refusal, not the room', async () => {
  const missing = new AppError('OS_NOT_FOUND', 'there is no OS');
  const two = dependencies({ one: NO_FLAGS, two: NO_FLAGS });
  const placing = placeInstance(createOpcode(), free, () => Promise.reject(missing), two);
  await assert.rejects(placing, missing);
});

interface GivenRoom {
  readonly list?: () => Promise<readonly IndexedInstance[]>;
  readonly active?: Set<number>;
  readonly room?: HostRoom;
}

function nodeRoom(given: GivenRoom = {}) {
  return createNodeRoom({
    nodeName: 'one',
    owns: () => true,
    index: { list: given.list ?? (() => Promise.resolve([])) },
    nodes: { flagsOf: () => Promise.resolve(NO_FLAGS) },
    clusters,
    measureRoom: () => Promise.resolve(given.room ?? ROOM),
    measureUse: () => Promise.resolve({ memoryMiB: 0, diskBytes: 0 }),
    isActive: (job) => given.active?.has(job) === true,
  });
}

const wanted = (name: string) => {
  const found = wantedBy(createOpcode({ name, beparams: { memoryMiB: 2048 } }));
  assert.ok(found);
  return found;
};

test('of two that ask at once for the last room one gets it, and it is free when that one has failed', async () => {
  const active = new Set([1]);
  const room = nodeRoom({ active });
  const both = await Promise.allSettled([room.admit(wanted('web1')), room.admit(wanted('web2'))]);
  assert.deepEqual(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  const [got] = both.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  got?.becomes(1);
  const refused = (error: unknown): boolean => isAppError(error, 'NO_ROOM');
  await assert.rejects(room.admit(wanted('web3')), refused);
  active.delete(1);
  (await room.admit(wanted('web3'))).withdraw();
  await room.admit(wanted('web4'));
});

test('one that comes from another node shares processors that are promised to stopped ones, and no memory', async () => {
  const stopped = { name: 'web0', tags: [], diskBytes: 0, beparams: { memoryMiB: 64, vcpus: 16 } };
  const list = (): Promise<readonly IndexedInstance[]> =>
    // No other field of an instance is read.
    Promise.resolve([{ ...stopped, primaryNode: 'one' } as unknown as IndexedInstance]);
  const room = nodeRoom({ list });
  const refused = (words: RegExp) => ({ code: 'NO_ROOM', message: words });
  await assert.rejects(room.admit(wanted('web1')), refused(/^needs 1 vcpu\(s\), 0 free$/));
  const arrival = { isArrival: true };
  (await room.admit(wanted('web1'), arrival)).withdraw();
  const large = { ...wanted('web1'), memoryMiB: 4000 };
  await assert.rejects(
    room.admit(large, arrival),
    refused(/^needs 3\.9 GiB of memory, 3\.7 GiB free$/),
  );
});

test('what was promised and is not in use yet is not free either: of three one gets what is left', async () => {
  const big = { ...ROOM, memoryMiB: 65_536, memoryFreeMiB: 26_624 };
  const sparse = { ...big, diskBytes: 1024 * GIB, diskFreeBytes: 105 * GIB };
  const large = (name: string) => ({ ...wanted(name), memoryMiB: 20_480, diskBytes: 90 * GIB });
  const made: IndexedInstance[] = [];
  const active = new Set([1]);
  const room = nodeRoom({ active, room: sparse, list: () => Promise.resolve(made) });
  const asked = await Promise.allSettled(['web1', 'web2', 'web3'].map((n) => room.admit(large(n))));
  assert.equal(asked.filter(({ status }) => status === 'fulfilled').length, 1);
  // The reservation remains after its job has ended: the disk is sparse and still empty.
  asked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))[0]?.becomes(1);
  active.delete(1);
  const { name, tags, diskBytes, memoryMiB, vcpus } = large('web1');
  const beparams = { memoryMiB, vcpus };
  made.push({ name, tags, diskBytes, beparams, primaryNode: 'one' } as unknown as IndexedInstance);
  await assert.rejects(room.admit(large('web4')), (error) => isAppError(error, 'NO_ROOM'));
});

test('a job that ends while the list is read leaves no gap through which its room is given twice', async () => {
  const active = new Set([1]);
  let list = (): Promise<IndexedInstance[]> => Promise.resolve([]);
  const room = nodeRoom({ active, list: () => list() });
  (await room.admit(wanted('web1'))).becomes(1);
  list = async () => {
    // The list is read before the record of web1 is committed. Then its job ends, and another
    // caller measures the room.
    active.delete(1);
    list = () => Promise.resolve([]);
    await room.candidate();
    return [];
  };
  await assert.rejects(room.admit(wanted('web2')), (error) => isAppError(error, 'NO_ROOM'));
});

test('what somebody put on the node is taken whatever there is, and counts', async () => {
  const submitted: string[] = [];
  const own = {
    submit: (opcode: { name: string }) => {
      submitted.push(opcode.name);
      return Promise.resolve(submitted.length);
    },
  } as unknown as JobService;
  const room = nodeRoom({ active: new Set([1, 2, 3]) });
  const layer = admittedJobs({
    room,
    clusters,
    osRegistry: { find: assert.fail },
    nicTaps: { check: () => assert.fail() },
  });
  const jobs = layerJobs([layer], own);
  const big = (name: string) => createOpcode({ name, beparams: { memoryMiB: 3000 } });
  await jobs.submit(big('web1'));
  await jobs.submit(big('web2'));
  const placed = jobs.submit(big('web3'), { placement: ['chosen'] });
  await assert.rejects(placed, (error) => isAppError(error, 'NO_ROOM'));
  await jobs.submit(big('web3'), { placement: ['chosen'], isDryRun: true });
  assert.deepEqual(submitted, ['web1', 'web2', 'web3']);
});
