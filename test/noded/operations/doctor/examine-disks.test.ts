import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GIB } from '#shared/units/bytes.ts';
import { examineDisks } from '../../../../noded/operations/doctor/examine-disks.ts';
import { instanceRecord } from '../../support/records.ts';
import type { OwnVolume } from '../../../../noded/storage/drivers/volumes/volume-names.ts';

const record = instanceRecord({});
const instance = (...sizes: readonly number[]) => ({
  name: 'a',
  diskTemplate: 'file' as const,
  snapshots: [],
  disks: sizes.map((gib) => ({ name: null, uuid: record.uuid, sizeBytes: gib * GIB })),
});
const levels = (facts: Parameters<typeof examineDisks>[0]) =>
  examineDisks(facts).map(({ level }) => level);

test('disks that may grow beyond their file system are told', () => {
  const instances = [instance(60, 20), instance(20)];
  assert.deepEqual(
    levels({
      shared: null,
      instances,
      totalBytes: 100 * GIB,
      left: [],
      abandoned: [],
      volumes: null,
      halted: [],
      ofNobody: [],
    }),
    ['ok', 'ok', 'ok'],
  );
  assert.deepEqual(
    levels({
      shared: null,
      instances,
      totalBytes: 99 * GIB,
      left: [],
      abandoned: [],
      volumes: null,
      halted: [],
      ofNobody: [],
    }),
    ['warning', 'ok', 'ok'],
  );
});

test('a snapshot counts as much as the disks that it was taken of', () => {
  const { disks } = instance(50);
  const taken = { ...record, uuid: record.uuid, name: 's', takenAtMs: 0, wasRunning: true };
  const snapshots = [{ ...taken, installState: 'installed' as const, disks }];
  const facts = {
    shared: null,
    instances: [{ name: 'a', diskTemplate: 'file' as const, disks, snapshots }],
    left: [],
    abandoned: [],
    volumes: null,
    halted: [],
    ofNobody: [],
  };
  assert.equal(levels({ ...facts, totalBytes: 100 * GIB })[0], 'ok');
  assert.equal(levels({ ...facts, totalBytes: 99 * GIB })[0], 'warning');
});

test('guests that stand still are named', () => {
  const facts = {
    shared: null,
    instances: [],
    totalBytes: GIB,
    left: [],
    abandoned: [],
    volumes: null,
    halted: ['a.example.com'],
    ofNobody: [],
  };
  assert.deepEqual(levels(facts), ['ok', 'warning', 'ok']);
  assert.match(examineDisks(facts)[1]?.message ?? '', /a\.example\.com/);
});

const onVolume = (name: string, vg: string, pool?: string) => ({
  ...{ name, diskTemplate: 'plain' as const, snapshots: [] },
  disks: [{ name: null, uuid: record.uuid, sizeBytes: GIB, vg, pool }],
});

test('who stands still since a thin pool is full is sent there, not to the file system', () => {
  const facts = { shared: null, totalBytes: GIB, left: [], abandoned: [], volumes: null };
  const instances = [onVolume('thin', 'xenvg', 'pool'), instance(1)];
  const hint = (...halted: readonly string[]) =>
    examineDisks({ ...facts, instances, halted, ofNobody: [] }).find(({ check }) => check === 'paused')?.hint; // prettier-ignore
  assert.equal(
    hint('thin'),
    'Free space in thin pool xenvg/pool. The guests then resume by themselves.',
  );
  assert.match(hint('a', 'thin') ?? '', /on the file system .*, and in thin pool xenvg\/pool/);
  assert.equal(
    hint('a'),
    'Free space on the file system of the disks. The guests then resume by themselves.',
  );
});

test('a volume group that disks are on, and that is gone, is an error with their names', () => {
  const facts = { shared: null, totalBytes: GIB, left: [], abandoned: [], halted: [] };
  const instances = [onVolume('web1', 'gone'), onVolume('db1', 'gone', 'pool'), instance(1)];
  const volumes = { groups: [], vgName: undefined, problem: null, own: [], pools: [] };
  const found = examineDisks({ ...facts, instances, volumes, ofNobody: [] });
  const [told, ...others] = found.filter(({ level }) => level === 'error');
  assert.deepEqual(others, []);
  assert.equal(
    told?.message,
    'volume group gone is missing on this node but holds disks of web1, db1',
  );
  assert.match(told.hint ?? '', /vgchange --activate y gone/);
});

test('disks whose record is gone are named, many of them as a count', () => {
  const ofNobody = Array.from({ length: 12 }, (_, index) => `uuid${index}`);
  const [, , finding] = examineDisks({
    shared: null,
    instances: [],
    totalBytes: GIB,
    left: [],
    abandoned: [],
    volumes: null,
    halted: [],
    ofNobody,
  });
  assert.equal(finding?.level, 'warning');
  assert.match(finding?.message ?? '', /uuid0, .*uuid9 and 2 more$/);
});

test('disks that a move has left are told with what to do, and only while there are some', () => {
  const facts = {
    shared: null,
    instances: [],
    totalBytes: GIB,
    abandoned: [],
    volumes: null,
    halted: [],
    ofNobody: [],
  };
  const left = ['/disks/leaving-1 (web1 of node2)'];
  const finding = examineDisks({ ...facts, left }).at(-1);
  assert.equal(finding?.check, 'disks-left');
  assert.match(finding.message, /leaving-1 \(web1 of node2\)/);
  assert.ok(examineDisks({ ...facts, left: [] }).every(({ check }) => check !== 'disks-left'));
});

test('copies that nobody works on are told with what to do, and only while there are some', () => {
  const facts = {
    shared: null,
    instances: [],
    totalBytes: GIB,
    left: [],
    volumes: null,
    halted: [],
    ofNobody: [],
  };
  const abandoned = ['/disks/copying-1 (no record)'];
  const finding = examineDisks({ ...facts, abandoned }).at(-1);
  assert.equal(finding?.check, 'copies-left');
  assert.equal(finding.level, 'warning');
  assert.match(finding.message, /copying-1 \(no record\)/);
  assert.match(finding.hint ?? '', /every ten minutes/);
  const none = examineDisks({ ...facts, abandoned: [] });
  assert.ok(none.every(({ check }) => check !== 'copies-left'));
});

test('shared disks do not count on the file system of the node, and their folder is looked at', () => {
  const facts = {
    totalBytes: GIB,
    left: [],
    abandoned: [],
    volumes: null,
    halted: [],
    ofNobody: [],
  };
  const instances = [{ ...instance(60), diskTemplate: 'sharedfile' as const }];
  const shared = { folder: '/srv/shared', problem: null };
  assert.deepEqual(levels({ ...facts, instances, shared }), ['ok', 'ok', 'ok', 'ok']);
  const [finding] = examineDisks({ ...facts, instances, shared: { ...shared, problem: 'gone' } });
  assert.equal(finding?.level, 'error');
  assert.equal(finding.message, 'gone');
});

test('what volume groups there are is told, and that the one for disks is not on this node', () => {
  const facts = { totalBytes: GIB, left: [], abandoned: [], halted: [], ofNobody: [] };
  const all = { ...facts, instances: [instance(60)], shared: null };
  const xenvg = {
    name: 'xenvg',
    uuid: 'g',
    sizeBytes: 4 * GIB,
    freeBytes: GIB,
    extentBytes: 4 * 2 ** 20,
  };
  const find = (groups: readonly (typeof xenvg)[] | null, vgName?: string) =>
    examineDisks({
      ...all,
      volumes: { ...{ groups, vgName, problem: null, own: [], pools: [] } },
    }).find(({ check }) => check === 'volume-group');
  assert.equal(find([xenvg], 'xenvg')?.message, 'volume group xenvg (1.0 GiB of 4.0 GiB free)');
  assert.match(find([xenvg])?.message ?? '', /no volume group .* this node has: xenvg/);
  assert.equal(find([xenvg], 'other')?.level, 'warning');
  assert.match(find(null, 'xenvg')?.message ?? '', /LVM does not answer/);
  assert.match(find(null, 'xenvg')?.hint ?? '', /apt-get install lvm2/);
});

test('a thin pool is told with what is in it and what it may come to, and one that leaks is an error', () => {
  const facts = { totalBytes: GIB, left: [], abandoned: [], halted: [], ofNobody: [] };
  const xenvg = {
    ...{ name: 'xenvg', uuid: 'g', sizeBytes: 4 * GIB, freeBytes: GIB, extentBytes: 4 * 2 ** 20 },
  };
  const pool = { group: 'xenvg', name: 'pool', sizeBytes: 2 * GIB, freeBytes: GIB };
  const volume = (sizeBytes: number) => ({ group: 'xenvg', pool: 'pool', sizeBytes }) as OwnVolume;
  const find = (
    usedShare: number,
    own: readonly OwnVolume[] = [],
    { vgName = 'xenvg/pool', isZeroing = true, isThere = true } = {},
  ) =>
    examineDisks({
      ...{ ...facts, instances: [], shared: null },
      volumes: {
        ...{ groups: [xenvg], vgName, problem: null, own },
        pools: isThere ? [{ ...pool, usedShare, isZeroing }] : [],
      },
    });
  const level = (...args: Parameters<typeof find>) =>
    find(...args).find(({ check }) => check === 'thin-pool')?.level;
  assert.equal(level(0.5, [volume(GIB)]), 'ok');
  assert.equal(level(0.5, [volume(GIB), volume(2 * GIB)]), 'warning');
  assert.equal(level(0.8), 'warning');
  assert.equal(level(0.95), 'error');
  assert.equal(level(0.5, [], { isZeroing: false }), 'error');
  assert.equal(level(0.9, [], { vgName: 'xenvg' }), undefined);
  assert.equal(level(0.9, [volume(GIB)], { vgName: 'xenvg' }), 'warning');
  assert.match(find(0.5)[3]?.message ?? '', /free, thin pools pool\)/);
  const [, , , missing] = find(0.5, [], { isThere: false });
  assert.match(missing?.message ?? '', /thin pool xenvg\/pool is missing on this node/);
  assert.match(missing?.hint ?? '', /lvcreate --type thin-pool .* --name pool xenvg/);
});
