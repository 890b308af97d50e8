import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { createEnterShared } from '../../../../noded/storage/fencing/enter-shared.ts';
import type { Entry } from '../../../../noded/storage/fencing/node-lease.ts';
import { instanceRecord } from '../../support/records.ts';

const OWN = 'node1.example.com';
const shared = instanceRecord({ name: 'web1' }, { diskTemplate: 'sharedfile', primaryNode: OWN });

function lab(stored: InstanceRecord | undefined | Error) {
  const calls: string[] = [];
  const entry = { [Symbol.dispose]: () => void calls.push('leave') } as unknown as Entry;
  const enter = createEnterShared({
    lease: {
      enter: async (uuid: string) => {
        calls.push(`enter ${uuid === shared.uuid ? 'web1' : uuid}`);
        return entry;
      },
    },
    instances: {
      findByUuid: () =>
        stored instanceof Error ? Promise.reject(stored) : Promise.resolve(stored),
    },
    owns: (node) => node === OWN,
  });
  return { calls, entry, enter };
}

test('the lease is entered before the disks of an instance of this node are opened', async () => {
  const { calls, entry, enter } = lab(shared);
  assert.equal(await enter(shared, 'run'), entry);
  assert.deepEqual(calls, ['enter web1']);
});

test('disks of this node alone need no lease', async () => {
  const { calls, enter } = lab(shared);
  assert.equal(await enter({ ...shared, diskTemplate: 'file' }, 'run'), null);
  assert.deepEqual(calls, []);
});

for (const [what, stored, code] of [
  ['another node took over', { ...shared, primaryNode: 'node2.example.com' }, 'CONFLICT'],
  ['was removed', undefined, 'CONFLICT'],
] as const) {
  test(`an instance that ${what} is not started here, and the lease is left`, async () => {
    for (const kind of ['run', 'appliance'] as const) {
      const { calls, enter } = lab(stored);
      await assert.rejects(enter(shared, kind), { code });
      assert.deepEqual(calls, ['enter web1', 'leave']);
    }
  });
}

test('a guest that moves here still belongs to the other node', async () => {
  const { calls, entry, enter } = lab({ ...shared, primaryNode: 'node2.example.com' });
  assert.equal(await enter(shared, 'moving'), entry);
  assert.deepEqual(calls, ['enter web1']);
});

test('a store that does not answer leaves the lease', async () => {
  const { calls, enter } = lab(new Error('no answer'));
  await assert.rejects(enter(shared, 'moving'), /no answer/);
  assert.deepEqual(calls, ['enter web1', 'leave']);
});
