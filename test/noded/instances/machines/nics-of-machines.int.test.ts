import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import {
  listNicsOfMachines,
  listOpenGuests,
} from '../../../../noded/instances/machines/nics-of-machines.ts';
import { type MachineRecord, RunDirectory } from '../../../../noded/vmm/run-directory.ts';
import { instanceRecord } from '../../support/records.ts';

type Nic = InstanceRecord['nics'][number];
/** @param number two digits, which end its UUID and its MAC */
const nicOf = (number: string, changes: object): Nic => ({
  uuid: `5f8d1c2e-0b6a-4c3d-9e7f-0000000000${number}`,
  ...{ mac: `52:54:00:00:00:${number}`, mode: 'bridged', link: null, name: null, ip: null },
  ...{ network: null, ...changes },
});

test('NICs in networks are those of records, and of the copy beside a running orphan', async (t) => {
  const vmDir = await mkdtemp(join(tmpdir(), 'gnt-nics-'));
  t.after(() => rm(vmDir, { recursive: true }));
  const lan = { networkName: 'lan', ip: '192.0.2.1' };
  const base = { installState: 'installed' } as const;
  const [first, orphan, damaged] = ['a', 'b', 'c'].map((letter, at) =>
    instanceRecord(
      {},
      {
        ...{ ...base, name: `${letter}.example.com` },
        uuid: `5f8d1c2e-0b6a-4c3d-9e7f-1a2b3c4d5e6${at}`,
        nics: [nicOf(`1${at}`, lan), nicOf(`2${at}`, { mode: 'user', reach: 'public' })],
      },
    ),
  ) as [InstanceRecord, InstanceRecord, InstanceRecord];
  for (const { uuid } of [first, orphan, damaged])
    await new RunDirectory(vmDir, uuid).create({} as unknown as MachineRecord);
  await new RunDirectory(vmDir, orphan.uuid).writeNote(JSON.stringify(orphan));
  await new RunDirectory(vmDir, damaged.uuid).writeNote('{');
  const current = {
    ...{ ...first, nics: [nicOf('30', { networkName: 'lan' }), nicOf('31', lan)] },
    partsOfRun: { nics: [nicOf('32', lan)] },
  } as unknown as InstanceRecord;
  const asked: unknown[] = [];
  const instances = {
    readSome: (uuids: readonly string[]) => {
      asked.push(...uuids);
      return Promise.resolve({ readable: [{ id: first.uuid, value: current }] });
    },
  } as unknown as Parameters<typeof listNicsOfMachines>[1];
  const found = await listNicsOfMachines(vmDir, instances);
  assert.deepEqual(
    found.map(({ uuid, name, network, ip }) => [uuid.slice(-2), name, network, ip]),
    [
      ['32', 'a.example.com', 'lan', '192.0.2.1'],
      ['31', 'a.example.com', 'lan', '192.0.2.1'],
      ['11', 'b.example.com', 'lan', '192.0.2.1'],
    ],
  );
  assert.equal(asked.length, 3);
  assert.deepEqual(await listOpenGuests(vmDir, instances), ['a.example.com', 'b.example.com']);
  const confined = {
    ...current,
    nics: [nicOf('31', { ...lan, reach: 'public' }), nicOf('33', {})],
  };
  const closed = {
    readSome: () => Promise.resolve({ readable: [{ id: first.uuid, value: confined }] }),
  } as unknown as typeof instances;
  assert.deepEqual(await listOpenGuests(vmDir, closed), ['b.example.com']);
});
