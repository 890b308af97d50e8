import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createExpectGuest } from '../../../../noded/cluster/migration/incoming-guest.ts';
import { argumentsOf, natureOf } from '../../../../noded/vmm/machine-nature.ts';
import type { MachineKind } from '../../../../noded/instances/machines/machine-parts.ts';
import { FakeMachine } from '../../support/fake-machine.ts';
import { instanceRecord } from '../../support/records.ts';

const record = { ...instanceRecord({ diskTemplate: 'diskless' }), serialNo: 1 } as InstanceRecord;
const signal = new AbortController().signal;

/** A machine whose QEMU ends when the test says so. */
async function expectOne(kind: MachineKind = 'moving') {
  const made = new FakeMachine(record.uuid);
  const machine = Object.assign(made, {
    migration: {
      ...made.migration,
      describe: () => Promise.resolve({ qemu: '10.0', board: 'pc' }),
      receive: () => Promise.resolve(),
      endReceiving: () => Promise.reject(new Error('connect ENOENT qmp.sock')),
    },
  });
  const kept = {
    machine,
    kind,
    instanceName: record.name,
    device: null,
    isOrphan: false,
    lostSecrets: [],
  };
  const lost: string[] = [];
  const expectGuest = createExpectGuest({
    runner: {
      expect: () => Promise.resolve(kept),
      welcome: () => Promise.resolve(machine.isRunning()),
    },
    keeper: {
      kill: async () => void (await machine.kill()),
      whenGone: async () => void (await machine.exited),
    },
    metad: { arrive: () => Promise.resolve() },
    endConnections: () => undefined,
    logger: silentLogger,
    instances: { findByUuid: () => Promise.resolve(record) },
    onLost: (uuid) => lost.push(uuid),
  });
  const guest = await expectGuest(
    record,
    { pathOf: (name) => `/nowhere/${name}` },
    {
      ...{ nature: await natureOf(machine), arguments: [...argumentsOf(machine)] },
      ...{ startedAtMs: 0, seed: null, secrets: {} },
    },
    signal,
  );
  return { guest, machine, lost };
}

test('a machine that ends before its guest is whole is named, and the guest is where it was', async () => {
  const { guest, machine } = await expectOne();
  machine.end('crashed');
  await assert.rejects(guest.whenWhole(signal), {
    code: 'MIGRATION_FAILED',
    message: 'the QEMU process that waited for the guest has ended',
  });
  await guest.refuse();
});

test('a guest whose machine ended after the switch is told as lost, and as the end of its run', async () => {
  const { guest, machine, lost } = await expectOne();
  machine.end('crashed');
  assert.equal(await guest.welcome(), 'lost');
  assert.deepEqual(lost, [record.uuid]);
});

test('the end of one that had gone on already is not told twice', async () => {
  const { guest, machine, lost } = await expectOne('run');
  machine.end('crashed');
  assert.equal(await guest.welcome(), 'lost');
  assert.deepEqual(lost, []);
});
