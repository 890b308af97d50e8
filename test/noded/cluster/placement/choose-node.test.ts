import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_FLAGS } from '#shared/contract/node-flags.ts';
import { GIB } from '#shared/units/bytes.ts';
import {
  chooseNode,
  describeChoice,
  exclusivePrefixes,
  judgeNode,
  noNodeFits,
  type Candidate,
  type Choice,
  type Share,
} from '../../../../noded/cluster/placement/choose-node.ts';

const ROOM = {
  cpus: 4,
  memoryMiB: 16_384,
  memoryFreeMiB: 16_384,
  diskBytes: 100 * GIB,
  diskFreeBytes: 100 * GIB,
};
const WANTED = { name: 'web1', memoryMiB: 1024, vcpus: 1, diskBytes: 10 * GIB, tags: [] };
const share = (given: Partial<Share> = {}): Share => ({ ...WANTED, ...given });

function node(name: string, given: Partial<Candidate> = {}): Candidate {
  return { name, flags: NO_FLAGS, room: ROOM, taken: [], ...given };
}

function choose(
  candidates: readonly Candidate[],
  given: Partial<Parameters<typeof chooseNode>[2]> = {},
): Choice {
  return chooseNode(candidates, WANTED, {
    ...{ exclusive: [], asked: 'node1', refused: new Map(), ...given },
  });
}

test('the node is taken that has most of its scarcest thing left, whoever was asked', () => {
  const busy = [share({ memoryMiB: 8192 })];
  assert.equal(choose([node('node1', { taken: busy }), node('node2')]).node, 'node2');
  // Free memory does not help if the disk is nearly full.
  const full = { ...ROOM, memoryMiB: 65_536, memoryFreeMiB: 65_536, diskFreeBytes: 20 * GIB };
  assert.equal(
    choose([node('node1', { room: full }), node('node2', { taken: busy })]).node,
    'node2',
  );
});

test('of nodes with as much room that with fewer instances is taken, then the asked one, then the first', () => {
  const trembling = { ...ROOM, memoryFreeMiB: ROOM.memoryFreeMiB - 20 };
  assert.equal(choose([node('node0'), node('node1', { room: trembling })]).node, 'node1');
  assert.equal(choose([node('node3'), node('node2')]).node, 'node2');
  const tiny = share({ memoryMiB: 16, vcpus: 0, diskBytes: 0 });
  assert.equal(choose([node('node1', { taken: [tiny] }), node('node2')]).node, 'node2');
});

test('what stands against a node is said, all of it', () => {
  const against = (given: Partial<Candidate>, wanted: Partial<Share> = {}): readonly string[] =>
    judgeNode(node('node1', given), { ...WANTED, ...wanted }, ['service:']);
  assert.deepEqual(against({}), []);
  assert.deepEqual(against({ flags: { drained: true, offline: false } }), ['drained']);
  assert.deepEqual(against({ flags: { drained: false, offline: true }, room: null }), [
    'marked offline',
  ]);
  assert.deepEqual(against({ room: null, silence: 'it does not answer' }), ['it does not answer']);
  assert.deepEqual(against({ taken: [share({ memoryMiB: 14_400 })] }), [
    'needs 1.0 GiB of memory, 0.9 GiB free',
  ]);
  // Memory without a reservation that another program uses.
  assert.deepEqual(against({ room: { ...ROOM, memoryFreeMiB: 1500 } }), [
    'needs 1.0 GiB of memory, 0.5 GiB free',
  ]);
  assert.deepEqual(against({ taken: [share({ vcpus: 16 })] }), ['needs 1 vcpu(s), 0 free']);
  assert.deepEqual(against({ taken: [share({ diskBytes: 90 * GIB })] }), [
    'needs 10.0 GiB of disk, 5.0 GiB free',
  ]);
  assert.deepEqual(against({ room: { ...ROOM, diskFreeBytes: GIB } }, { diskBytes: 0 }), []);
  const tagged = { taken: [share({ tags: ['service:dns', 'blue'] })] };
  assert.deepEqual(against(tagged, { tags: ['service:dns', 'blue'] }), [
    "has an instance with the exclusive tag 'service:dns'",
  ]);
  assert.equal(against({ taken: [share({ memoryMiB: 16_000, vcpus: 16 })] }).length, 2);
});

test("Ganeti's tags of the cluster make tags of instances exclusive", () => {
  assert.deepEqual(exclusivePrefixes(['htools:iextags:service', 'htools:iextags:', 'blue']), [
    'service:',
  ]);
});

test('the choice says why, and who refused is not chosen again', () => {
  const refused = new Map([['node1', "OS 'x' is not found"]]);
  const choice = choose([node('node1'), node('node2'), node('node3', { room: null })], { refused });
  assert.equal(choice.node, 'node2');
  assert.deepEqual(describeChoice(choice), [
    'placed on node2, the emptiest of 1 suitable node(s): 14.0 GiB of memory, 85.0 GiB of disk, 15 of 16 vcpus would remain',
    "not on node1: OS 'x' is not found",
    'not on node3: reports no free capacity',
  ]);
});

test('when none fits each node is named with its reasons, and a thousand are not a flood', () => {
  const silent = Array.from({ length: 1000 }, (_, index) =>
    node(`node${index}`, { room: null, silence: 'x'.repeat(1000) }),
  );
  const choice = choose([node('drained', { flags: { drained: true, offline: false } }), ...silent]);
  assert.equal(choice.node, null);
  const error = noNodeFits('web1', choice);
  assert.match(error.message, /^no node has room for 'web1' \(drained: drained \| node0: x+/);
  assert.match(error.message, /and 985 more\)$/);
  const lines = describeChoice(choice);
  assert.ok(lines.length <= 16 && lines.every((line) => line.length <= 256));
});

test('what instances have in use already is not taken off what is free a second time', () => {
  const left = (inUse: Share['inUse'], diskFreeBytes: number): readonly string[] =>
    judgeNode(
      node('node1', {
        room: { ...ROOM, diskBytes: 200 * GIB, diskFreeBytes },
        taken: [share({ diskBytes: 100 * GIB, ...(inUse && { inUse }) })],
      }),
      { ...WANTED, diskBytes: 80 * GIB },
      [],
    );
  const written = { memoryMiB: 1024, diskBytes: 100 * GIB };
  assert.deepEqual(left(written, 100 * GIB), []);
  assert.deepEqual(left(undefined, 100 * GIB), []);
  // The same free space, of which the disk will use 100 GiB.
  assert.match(left({ ...written, diskBytes: 0 }, 100 * GIB)[0] ?? '', /0.0 GiB free/);
});

test('the reasons of a choice fit into a query, whatever tags they name', () => {
  const tag = `service:${'\u{1F980}'.repeat(60)}`;
  const busy = share({ tags: [tag] });
  const nodes = Array.from({ length: 20 }, (_, index) => node(`node${index}`, { taken: [busy] }));
  const wanted = { ...WANTED, tags: [tag] };
  const preference = { exclusive: ['service:'], asked: 'node1', refused: new Map() };
  const lines = describeChoice(chooseNode([...nodes, node('free')], wanted, preference));
  assert.equal(lines.length, 16);
  assert.ok(encodeURIComponent(JSON.stringify(lines)).length < 12_000);
  assert.match(
    lines[1] ?? '',
    /^not on node0: has an instance with the exclusive tag 'service:.*…$/u,
  );
});

test('disks in LVM volumes go where the group has room, what was given and is not made counted', () => {
  const GROUP = { sizeBytes: 100 * GIB, freeBytes: 20 * GIB };
  const room = { ...ROOM, volumes: GROUP };
  const wanted = { ...WANTED, diskBytes: 0, volumeBytes: 10 * GIB };
  const against = (given: Partial<Candidate>): readonly string[] =>
    judgeNode(node('node1', given), wanted, []);
  assert.deepEqual(against({ room }), []);
  assert.deepEqual(against({}), ['needs 10.0 GiB of LVM volumes, no volume group for disks']);
  assert.deepEqual(against({ room, taken: [share({ volumeBytes: 12 * GIB })] }), [
    'needs 10.0 GiB of LVM volumes, 8.0 GiB free',
  ]);
  // A full file system does not matter to volumes, nor a full group to files.
  assert.deepEqual(against({ room: { ...room, diskFreeBytes: 0 } }), []);
  const full = { ...room, volumes: { ...GROUP, freeBytes: 0 } };
  assert.deepEqual(judgeNode(node('node1', { room: full }), WANTED, []), []);
  const roomy = { ...room, volumes: { ...GROUP, freeBytes: 90 * GIB } };
  const choice = chooseNode([node('node1', { room }), node('node2', { room: roomy })], wanted, {
    ...{ exclusive: [], asked: 'node1', refused: new Map() },
  });
  assert.equal(choice.node, 'node2');
  assert.match(choice.why, /80\.0 GiB of LVM volumes/);
});

test('disks in ZFS volumes go where a pool has room for them, and not by a volume group', () => {
  const room = { ...ROOM, volumes: { sizeBytes: 100 * GIB, freeBytes: 90 * GIB } };
  const wanted = { ...WANTED, diskBytes: 0, volumeBytes: 0, zvolBytes: 10 * GIB };
  const against = (given: Partial<Candidate>): readonly string[] =>
    judgeNode(node('node1', given), wanted, []);
  assert.deepEqual(against({ room }), ['needs 10.0 GiB of ZFS volumes, no ZFS pool for disks']);
  const zvols = { sizeBytes: 20 * GIB, freeBytes: 12 * GIB };
  assert.deepEqual(against({ room: { ...room, zvols } }), []);
  const taken = [share({ zvolBytes: 4 * GIB })];
  assert.deepEqual(against({ room: { ...room, zvols }, taken }), [
    'needs 10.0 GiB of ZFS volumes, 8.0 GiB free',
  ]);
});

const SMALL = { memoryMiB: 0, vcpus: 0, diskBytes: 0, tags: [] };
const HUGE = { ...ROOM, memoryMiB: 65_536, memoryFreeMiB: 65_536 };
const FILLED = { ...HUGE, diskBytes: 1000 * GIB, diskFreeBytes: 1000 * GIB };
const VOLUMES = { volumes: { sizeBytes: 9 * GIB, freeBytes: 3 * GIB } };
/** The largest value of a resource that fits on a node. */
for (const [what, room, taken, key, most] of [
  ['a sixteenth of a small memory', ROOM, [], 'memoryMiB', 15_360],
  ['1 GiB of a large memory', HUGE, [], 'memoryMiB', 64_512],
  ['memory of other programs', { ...HUGE, memoryFreeMiB: 2048 }, [], 'memoryMiB', 1024],
  ['memory of instances', HUGE, [share({ memoryMiB: 64_000 })], 'memoryMiB', 512],
  ['four vcpus for each processor', ROOM, [], 'vcpus', 16],
  ['vcpus of instances', ROOM, [share({ vcpus: 13 })], 'vcpus', 3],
  ['5 GiB of a large disk', FILLED, [], 'diskBytes', 995 * GIB],
  [
    'a twentieth of a small disk',
    { ...ROOM, diskBytes: 20 * GIB, diskFreeBytes: 20 * GIB },
    ...([[], 'diskBytes', 19 * GIB] as const),
  ],
  ['the room of the volume group', { ...ROOM, ...VOLUMES }, [], 'volumeBytes', 3 * GIB],
  [
    'reserved volumes',
    { ...ROOM, ...VOLUMES },
    ...([[share({ volumeBytes: GIB })], 'volumeBytes', 2 * GIB] as const),
  ],
] as const) {
  test(`an instance fits up to the limit: ${what}`, () => {
    const against = (value: number): readonly string[] =>
      judgeNode(node('node1', { room, taken: [...taken] }), { ...SMALL, [key]: value }, []);
    assert.deepEqual(against(most), []);
    assert.equal(against(most + 1).length, 1);
  });
}

for (const [what, nodes, expected] of [
  ['with fewer instances', [[share(SMALL), share(SMALL)], [share(SMALL)]], 'node1'],
  ['that was asked', [[], []], 'node1'],
  ['with more memory left', [[], [share({ ...SMALL, memoryMiB: 4096 })]], 'node0'],
  ['with more vcpus left', [[], [share({ ...SMALL, vcpus: 15 })]], 'node0'],
  ['with more disk left', [[], [share({ ...SMALL, diskBytes: 80 * GIB })]], 'node0'],
] as const) {
  test(`of two nodes the one ${what} is chosen`, () => {
    const candidates = nodes.map((taken, at) => node(`node${at}`, { taken: [...taken] }));
    assert.equal(choose(candidates).node, expected);
    assert.equal(choose(candidates.toReversed()).node, expected);
  });
}

test('each list of nodes is whole up to its limit, and counts the rest beyond it', () => {
  const silent = (count: number): Choice =>
    choose(
      Array.from({ length: count }, (_, at) =>
        node(`node${String(at).padStart(2, '0')}`, { room: null }),
      ),
    );
  assert.equal(describeChoice(silent(14)).length, 15);
  assert.equal(describeChoice(silent(14)).at(-1), 'not on node13: reports no free capacity');
  assert.equal(describeChoice(silent(15)).length, 16);
  assert.equal(describeChoice(silent(15)).at(-1), 'nor on 1 other node(s)');
  assert.doesNotMatch(noNodeFits('web1', silent(16)).message, /more\)$/);
  assert.match(noNodeFits('web1', silent(17)).message, /, and 1 more\)$/);
});
