import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { NodeParts } from '../../../../noded/operations/doctor/check.ts';
import {
  listAbandoned,
  listForgotten,
  listNobodys,
} from '../../../../noded/operations/doctor/list-leftovers.ts';

const partsOf = (parts: object): NodeParts => parts as unknown as NodeParts;

test('a disk without a record or a running orphan has no owner', async () => {
  const parts = partsOf({
    host: { disks: { list: () => Promise.resolve(['known', 'running', 'lost']) } },
    records: { store: { ids: () => Promise.resolve(['known']) } },
    guests: { keeper: { list: () => [{ machine: { uuid: 'running' } }] } },
  });
  const volume = (instance: string) => ({ instance, group: 'vg', name: `v-${instance}` });
  assert.deepEqual(
    await listNobodys(parts, [volume('known'), volume('running'), volume('gone')] as never),
    ['lost', 'vg/v-gone'],
  );
});

test('a copy counts as abandoned only if it is there twice, and does not arrive', async () => {
  const lists = [
    ['ending', 'still', 'arriving'],
    ['still', 'arriving', 'new'],
  ];
  const parts = partsOf({
    config: { paths: { disksDir: '/d' } },
    host: {
      disks: { listCopies: () => Promise.resolve(lists.shift() ?? []) },
      moving: { isArriving: (uuid: string) => uuid === 'arriving' },
    },
    records: { instances: { findByUuid: () => Promise.resolve(undefined) } },
  });
  assert.deepEqual(await listAbandoned(parts), ['/d/copying-still (no record)']);
});

test('a snapshot folder counts as forgotten if the present record lacks it', async () => {
  const instance = (uuid: string, snapshots: string[]) =>
    ({ uuid, snapshots: snapshots.map((each) => ({ uuid: each })) }) as unknown as InstanceRecord;
  const folders: Record<string, string[]> = { a: ['/s/old', '/s/new'], b: [], gone: ['/s/x'] };
  const present = new Map([['a', instance('a', ['new'])]]);
  const parts = partsOf({
    host: {
      snapshots: { listForgotten: ({ uuid }: InstanceRecord) => Promise.resolve(folders[uuid]) },
    },
    records: { instances: { findByUuid: (uuid: string) => Promise.resolve(present.get(uuid)) } },
  });
  const own = [instance('a', []), instance('b', []), instance('gone', [])];
  assert.deepEqual(await listForgotten(own, parts), ['/s/old']);
});
