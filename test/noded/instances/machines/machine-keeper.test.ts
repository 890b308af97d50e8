import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { Secret } from '#shared/secret/secret.ts';
import type { MachineNic, MachineSpec } from '../../../../noded/vmm/machine.ts';
import {
  MachineKeeper,
  type MachineRequest,
} from '../../../../noded/instances/machines/machine-keeper.ts';
import {
  instanceLayer,
  resolveParameters,
} from '../../../../noded/instances/parameters/os-parameters.ts';
import { planView } from '../../../../noded/instances/view/plan-view.ts';
import { FakeHypervisor, FakeMetad, FakeNetwork } from '../../support/fake-node.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { clusterRecord, instanceRecord } from '../../support/records.ts';
import { bridgesOnly } from '../../support/bridges-only.ts';

function createKeeper() {
  const hypervisor = new FakeHypervisor();
  const network = new FakeNetwork();
  const metad = new FakeMetad();
  const exits: string[] = [];
  const nicTaps: string[] = [];
  const boots: string[] = [];
  const keeper = new MachineKeeper({
    enterShared: () => Promise.resolve(null),
    nicTaps: { ...bridgesOnly, tidy: () => Promise.resolve(void nicTaps.push('tidied')) },
    hypervisor,
    network,
    metad,
    boots: {
      settle: (uuid, isShown) => boots.push(`${uuid} ${isShown ? 'shown' : 'not shown'}`),
      forget: (uuid) => boots.push(`${uuid} forgotten`),
    },
    logger: silentLogger,
    clock: new ManualClock(),
    onReleased: (machine, part) => nicTaps.push(`${part} of ${machine.uuid} released`),
    onExit: (uuid, kind, exit) => exits.push(`${uuid} ${kind} ${exit.reason}`),
  });
  return { keeper, hypervisor, network, metad, exits, nicTaps, boots };
}

const record = instanceRecord({
  communication: true,
  osParametersSecret: { rootpw: 'x' },
  nics: [{ mode: 'user' }],
});

function viewOf(instance: InstanceRecord, secret?: string) {
  return (device: string, revision: number): Promise<InstanceView> =>
    Promise.resolve(
      planView({
        instance,
        cluster: clusterRecord,
        device,
        revision,
        parameters: resolveParameters([
          instanceLayer(
            instance,
            new Map(secret === undefined ? [] : [['rootpw', new Secret(secret)]]),
          ),
        ]),
        install: null,
      }),
    );
}

function specOf(instance: InstanceRecord, nics: readonly MachineNic[]): MachineSpec {
  return {
    uuid: instance.uuid,
    name: instance.name,
    smbios: { uuid: instance.instanceId },
    memoryMiB: 64,
    vcpus: 1,
    accelerator: 'tcg',
    disks: [],
    nics,
    noReboot: false,
  };
}

function request(overrides: Partial<MachineRequest> = {}): MachineRequest {
  return {
    instance: record,
    kind: 'run',
    makeView: viewOf(record, 's3cret'),
    withInstanceNics: true,
    makeSpec: (nics) => Promise.resolve(specOf(record, nics)),
    ...overrides,
  };
}

test('a started machine has its view and its TAP, the channel as the last NIC, and no descriptor stays open here', async () => {
  const { keeper, hypervisor, network, metad } = createKeeper();
  await keeper.start(request());
  const [spec] = hypervisor.specs;
  assert.deepEqual(
    spec?.nics.map((nic) => (nic.kind === 'tap' ? nic.channel : nic.kind)),
    ['user', true],
  );
  assert.equal(metad.views.get(record.uuid)?.channel.device, 'gnt.com.0');
  assert.deepEqual(hypervisor.metas, [{ kind: 'run', instance: record.name, device: 'gnt.com.0' }]);
  assert.equal(network.openDescriptors, 0);
  assert.deepEqual([...network.taps], ['gnt.com.0']);
});

test('the view is served before the machine is described', async () => {
  const { keeper, metad } = createKeeper();
  let wasServed = false;
  await keeper.start(
    request({
      makeSpec: (nics) => {
        wasServed = metad.views.has(record.uuid);
        return Promise.resolve(specOf(record, nics));
      },
    }),
  );
  assert.ok(wasServed);
});

test('without the channel there is neither TAP nor view', async () => {
  const { keeper, network, metad } = createKeeper();
  await keeper.start(request({ makeView: null }));
  assert.equal(network.taps.size, 0);
  assert.equal(metad.views.size, 0);
  assert.equal(keeper.get(record.uuid)?.device, null);
});

test('a machine that ends takes its view and its TAP with it, then whoever waits is told', async () => {
  const { keeper, hypervisor, network, metad, exits } = createKeeper();
  await keeper.start(request());
  hypervisor.machines[0]?.end('guest-shutdown');
  await keeper.whenGone(record.uuid);
  assert.equal(keeper.get(record.uuid), undefined);
  assert.equal(metad.views.size, 0);
  assert.equal(network.taps.size, 0);
  assert.deepEqual(exits, [`${record.uuid} run guest-shutdown`]);
});

test('killing waits until nothing is left, and is nothing for a machine that is not there', async () => {
  const { keeper, network } = createKeeper();
  await keeper.kill(record.uuid);
  await keeper.start(request());
  await keeper.kill(record.uuid);
  assert.equal(keeper.get(record.uuid), undefined);
  assert.equal(network.taps.size, 0);
});

for (const [what, prepare] of [
  ['the hypervisor', (lab) => (lab.hypervisor.failure = new AppError('QEMU_FAILED', 'no'))],
  ['metad', (lab) => (lab.metad.isDown = true)],
] satisfies [string, (lab: ReturnType<typeof createKeeper>) => unknown][]) {
  test(`a start that fails in ${what} leaves no TAP, no descriptor, no view and no machine`, async () => {
    const lab = createKeeper();
    prepare(lab);
    await assert.rejects(lab.keeper.start(request()), AppError);
    assert.equal(lab.network.taps.size, 0);
    assert.equal(lab.network.openDescriptors, 0);
    assert.equal(lab.metad.views.size, 0);
    assert.equal(lab.keeper.get(record.uuid), undefined);
  });
}

test('a start that is cancelled while the machine is described starts nothing', async () => {
  const { keeper, hypervisor, network } = createKeeper();
  const controller = new AbortController();
  const starting = keeper.start(
    request({
      signal: controller.signal,
      makeSpec: (nics) => {
        controller.abort(new AppError('JOB_CANCELED', 'cancelled'));
        return Promise.resolve(specOf(record, nics));
      },
    }),
  );
  await assert.rejects(starting, { code: 'JOB_CANCELED' });
  assert.equal(hypervisor.machines.length, 0);
  assert.equal(network.taps.size, 0);
});

test('an instance never has two machines', async () => {
  const { keeper, hypervisor } = createKeeper();
  await keeper.start(request());
  await assert.rejects(keeper.start(request()), /already has a QEMU process/);
  assert.equal(hypervisor.machines.length, 1);
});

test('a start waits for the remains of a machine that has just ended', async () => {
  const { keeper, hypervisor } = createKeeper();
  await keeper.start(request());
  hypervisor.machines[0]?.end('guest-shutdown');
  await keeper.start(request());
  await turn();
  assert.equal(keeper.get(record.uuid)?.machine, hypervisor.machines[1]);
});

test('a restarted metad is told every view again, but no secret that the job has forgotten', async () => {
  const { keeper, metad } = createKeeper();
  await keeper.start(request());
  assert.deepEqual(metad.views.get(record.uuid)?.osParameters['rootpw'], {
    value: 's3cret',
    visibility: 'secret',
  });
  keeper.forgetSecrets(record.uuid, viewOf(record));
  metad.views.clear();
  await keeper.republishAll();
  assert.deepEqual(metad.views.get(record.uuid)?.osParameters['rootpw'], {
    value: null,
    visibility: 'secret',
  });
});

test('metad is told of each view whether its guest was started before', async () => {
  const { keeper, metad } = createKeeper();
  await keeper.start(request());
  assert.deepEqual(metad.guestsUp.splice(0), [false]);
  await keeper.republish(record.uuid, viewOf(record));
  await keeper.republishAll();
  await keeper.adopt(record, viewOf(record));
  assert.deepEqual(metad.guestsUp, [true, true, true]);
});

test('one view that cannot be told does not keep the others from metad', async () => {
  const { keeper, metad } = createKeeper();
  const other = instanceRecord(
    { name: 'web2.example.com', communication: true },
    { uuid: '00000000-0000-4000-8000-0000000000ff' },
  );
  await keeper.start(request());
  await keeper.start(
    request({
      instance: other,
      makeView: viewOf(other),
      makeSpec: (nics) => Promise.resolve(specOf(other, nics)),
    }),
  );
  keeper.forgetSecrets(record.uuid, () => Promise.reject(new Error('instance is gone')));
  metad.views.clear();
  await keeper.republishAll();
  assert.deepEqual([...metad.views.keys()], [other.uuid]);
});

test('each view that is told is newer than the one before, whatever the clock says', async () => {
  const { keeper, metad } = createKeeper();
  await keeper.start(request());
  const first = metad.views.get(record.uuid)?.revision ?? 0;
  await keeper.republish(record.uuid, viewOf(record));
  assert.ok((metad.views.get(record.uuid)?.revision ?? 0) > first);
});

test('a keeper that begins anew goes on from the revisions that metad has', async () => {
  const { keeper, metad } = createKeeper();
  metad.views.set(record.uuid, await viewOf(record)('gnt.com.0', 5_000_000));
  keeper.continueRevisions(5_000_000);
  await keeper.start(request());
  assert.equal(metad.views.get(record.uuid)?.revision, 5_000_001);
});

test('the record is kept beside a machine in a normal run, and anew when it changes or is taken over', async () => {
  const { keeper, hypervisor } = createKeeper();
  await keeper.start(request());
  const [machine] = hypervisor.machines;
  assert.deepEqual(JSON.parse(machine?.note ?? ''), record);
  assert.doesNotMatch(machine?.note ?? '', /s3cret/);
  const changed = { ...record, tags: ['new'] };
  await keeper.keepRecord(changed);
  assert.deepEqual(JSON.parse(machine?.note ?? ''), changed);
  await keeper.adopt(record, viewOf(record));
  assert.deepEqual(JSON.parse(machine?.note ?? ''), record);
});

test('no record is kept beside an appliance', async () => {
  const { keeper, hypervisor } = createKeeper();
  await keeper.start(request({ kind: 'appliance' }));
  await keeper.keepRecord(record);
  assert.equal(hypervisor.machines[0]?.note, undefined);
});

test('what there was on the node for a NIC goes when it is out of the machine, at once or late', async () => {
  const { keeper, nicTaps } = createKeeper();
  const machine = await keeper.start(request());
  assert.equal(await keeper.unplug(record.uuid, 'nobody'), false);
  assert.deepEqual(nicTaps, []);
  machine.onRelease?.('late');
  await turn();
  assert.deepEqual(nicTaps, ['tidied', `late of ${record.uuid} released`]);
});

test('what a machine loads changes when metad has its view, and goes with a start that fails', async () => {
  const { keeper, metad, boots } = createKeeper();
  const take = (): string[] =>
    boots.splice(0).map((line) => {
      assert.ok(line.startsWith(`${record.uuid} `));
      return line.slice(record.uuid.length + 1);
    });
  await keeper.start(
    request({
      makeSpec: (nics) => {
        assert.deepEqual(take(), ['shown']);
        return Promise.resolve(specOf(record, nics));
      },
    }),
  );
  metad.isDown = true;
  await assert.rejects(keeper.republish(record.uuid, viewOf(record)));
  assert.deepEqual(take(), ['not shown']);
  const broken = (): Promise<InstanceView> => Promise.reject(new Error('it is gone'));
  await assert.rejects(keeper.republish(record.uuid, broken));
  assert.deepEqual(take(), ['not shown']);
  metad.isDown = false;
  await keeper.republish(record.uuid, viewOf(record));
  assert.deepEqual(take(), ['shown']);
  await keeper.restart(record.uuid, async () => {
    await keeper.kill(record.uuid);
    assert.deepEqual(take(), []);
    await keeper.start(request());
  });
  assert.deepEqual(take(), ['shown']);
  await keeper.kill(record.uuid);
  assert.deepEqual(take(), ['forgotten']);

  const failing = request({ makeSpec: () => Promise.reject(new Error('no such kernel')) });
  await assert.rejects(keeper.start(failing), /no such kernel/);
  assert.deepEqual(take(), ['shown', 'forgotten']);
});
