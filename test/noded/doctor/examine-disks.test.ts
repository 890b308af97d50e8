import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GIB } from '#shared/units/bytes.ts';
import { examineDisks } from '../../../noded/doctor/examine-disks.ts';
import { instanceRecord } from '../support/records.ts';

const record = instanceRecord({});
const instance = (...sizes: readonly number[]) => ({
  name: 'a',
  disks: sizes.map((gib) => ({ name: null, uuid: record.uuid, sizeBytes: gib * GIB })),
});
const levels = (facts: Parameters<typeof examineDisks>[0]) =>
  examineDisks(facts).map(({ level }) => level);

test('disks that may grow beyond their file system are told', () => {
  const instances = [instance(60, 20), instance(20)];
  assert.deepEqual(levels({ instances, totalBytes: 100 * GIB, halted: [] }), ['ok', 'ok']);
  assert.deepEqual(levels({ instances, totalBytes: 99 * GIB, halted: [] }), ['warning', 'ok']);
});

test('guests that stand still are named', () => {
  const facts = { instances: [], totalBytes: GIB, halted: ['a.example.com'] };
  assert.deepEqual(levels(facts), ['ok', 'warning']);
  assert.match(examineDisks(facts)[1]?.message ?? '', /a\.example\.com/);
});
