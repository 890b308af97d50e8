import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planSettling } from '../../../../noded/storage/drivers/volumes/plan-settling.ts';
import type {
  OwnVolume,
  VolumeState,
} from '../../../../noded/storage/drivers/volumes/volume-names.ts';
import { THICK } from './sample-volumes.ts';

const volume = (disk: string, state: VolumeState, changes: Partial<OwnVolume> = {}): OwnVolume => ({
  ...{ ...THICK, groupUuid: 'g' },
  ...{ group: 'xenvg', name: disk, sizeBytes: 8, tags: [], isActive: true, instance: 'i' },
  ...{ origin: '', node: null, dependents: [] },
  ...{ disk, state, dirtyFromBytes: null, ...changes },
});
const plan = (volumes: readonly OwnVolume[], disks: readonly string[], isDecided = true) =>
  planSettling(volumes, {
    disks: disks.map((uuid) => ({ uuid })),
    snapshots: [{ uuid: 'kept' }],
    currentIds: ['now', null],
    isDecided,
  }).map(({ kind, volume: { disk, state } }) => `${kind} ${disk} ${state.kind}`);
const next = (installation: string): VolumeState => ({ kind: 'next', installation });

test('what was being made goes, unless its record has come to know it', () => {
  assert.deepEqual(plan([volume('a', { kind: 'ready' })], ['a']), ['become-disk a ready']);
  assert.deepEqual(plan([volume('a', { kind: 'ready' })], []), ['remove a ready']);
  assert.deepEqual(plan([volume('a', { kind: 'new' })], ['a']), ['remove a new']);
  assert.deepEqual(plan([volume('a', { kind: 'new' })], ['a'], false), []);
});

test('what was leaving comes back, unless its record has forgotten it', () => {
  assert.deepEqual(plan([volume('a', { kind: 'leaving' })], ['a']), ['become-disk a leaving']);
  assert.deepEqual(plan([volume('a', { kind: 'leaving' })], ['b']), ['remove a leaving']);
});

test('the disks of an installation that succeeded replace the old ones, those of others go', () => {
  const both = [volume('a', next('now')), volume('a', { kind: 'disk' })];
  assert.deepEqual(plan(both, ['a']), ['remove a disk', 'become-disk a next']);
  assert.deepEqual(plan([volume('a', next('now'))], ['a']), ['become-disk a next']);
  assert.deepEqual(plan([volume('a', next('then')), volume('a', { kind: 'disk' })], ['a']), [
    'remove a next',
  ]);
  assert.deepEqual(plan([volume('a', next('then'))], ['a'], false), []);
});

test('a disk is used when it is active and clean, and one that no record has is left alone', () => {
  const state = { kind: 'disk' } as const;
  assert.deepEqual(plan([volume('a', state)], ['a']), []);
  assert.deepEqual(plan([volume('a', state, { isActive: false, dirtyFromBytes: 4 })], ['a']), [
    'activate a disk',
    'zero a disk',
  ]);
  assert.deepEqual(plan([volume('b', state)], ['a']), []);
});

test('the snapshot that was being made stays if its record has it, and goes if not', () => {
  const snapshotting = (snapshot: string) => volume('a', { kind: 'snapshotting', snapshot });
  assert.deepEqual(plan([snapshotting('kept')], ['a']), ['become-snapshot a snapshotting']);
  assert.deepEqual(plan([snapshotting('lost')], ['a']), ['remove a snapshotting']);
});

test('a finished snapshot stays, whatever the record says', () => {
  assert.deepEqual(plan([volume('a', { kind: 'snapshot', snapshot: 'lost' })], []), []);
});

test('the successor of one disk replaces no other disk', () => {
  const disks = [volume('a', { kind: 'disk' }), volume('b', next('now'))];
  assert.deepEqual(plan(disks, ['a', 'b']), ['become-disk b next']);
});

test('a disk is zeroed from the byte on from which it is dirty', () => {
  const dirty = volume('a', { kind: 'disk' }, { dirtyFromBytes: 4 });
  const record = { disks: [{ uuid: 'a' }], snapshots: [], currentIds: [], isDecided: true };
  assert.deepEqual(planSettling([dirty], record), [{ kind: 'zero', volume: dirty, fromBytes: 4 }]);
});
