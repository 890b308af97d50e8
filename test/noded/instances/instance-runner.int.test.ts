import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { Secret } from '#shared/secret/secret.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import type { InstanceRepository } from '../../../noded/records/instance-repository.ts';
import { InstanceRunner } from '../../../noded/instances/instance-runner.ts';
import { noSecrets } from '../../../noded/instances/parameters/job-secrets.ts';
import { MachineKeeper } from '../../../noded/instances/machines/machine-keeper.ts';
import {
  instanceLayer,
  resolveParameters,
} from '../../../noded/instances/parameters/os-parameters.ts';
import { planView } from '../../../noded/instances/view/plan-view.ts';
import type { Views } from '../../../noded/instances/view/views.ts';
import { FakeHypervisor, FakeMetad, FakeNetwork } from '../support/fake-node.ts';
import { createLabLifecycles } from '../support/lab-lifecycles.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { noBoots } from '../support/no-boots.ts';
import { clusterRecord, instanceRecord } from '../support/records.ts';
import { bridgesOnly } from '../support/bridges-only.ts';

const record = instanceRecord({
  communication: true,
  seedDisk: false,
  osParametersSecret: { rootpw: 'x' },
  diskTemplate: 'diskless',
});
const secrets = {
  osParameters: new Map([['rootpw', new Secret('s3cret')]]),
  packageUser: undefined,
  packagePassword: undefined,
};
const context = {
  jobId: 1,
  signal: new AbortController().signal,
  report: {
    log: () => undefined,
    waits: () => undefined,
    stageStarted: () => undefined,
    stageFinished: () => undefined,
    progress: () => undefined,
    output: () => undefined,
    scriptOutput: () => undefined,
  },
};

function createRunner(disksDir = '/nonexistent', lifecycles = createLabLifecycles()) {
  const metad = new FakeMetad();
  const hypervisor = new FakeHypervisor();
  const followed: string[] = [];
  const logged: Readonly<Record<string, unknown>>[] = [];
  const clock = new ManualClock();
  const keeper = new MachineKeeper({
    enterShared: () => Promise.resolve(null),
    nicTaps: bridgesOnly,
    boots: noBoots,
    hypervisor,
    network: new FakeNetwork(),
    metad,
    logger: {
      ...silentLogger,
      warn: (event, fields) => void logged.push({ event, ...fields }),
    },
    clock,
    onReleased: () => undefined,
    onExit: () => undefined,
  });
  const forRun: Views['forRun'] = (_uuid, device, revision, given) =>
    Promise.resolve(
      planView({
        instance: record,
        cluster: clusterRecord,
        device,
        revision,
        parameters: resolveParameters([
          instanceLayer(record, given?.osParameters ?? new Map<string, Secret>()),
        ]),
        install: null,
      }),
    );
  const views: Views = {
    ...{ forRun, asGiven: forRun, forStart: forRun },
    forInstall: () => Promise.reject(new Error('no installation here')),
  };
  const runner = new InstanceRunner({
    nicTaps: bridgesOnly,
    // A start calls no other method of the repository.
    instances: { update: () => Promise.resolve(record) } as unknown as InstanceRepository,
    keeper,
    views,
    metad,
    disks: createInstanceDisks(disksDir),
    guestReports: {
      follow: () => undefined,
      followAdopted: ({ machine }) => followed.push(machine.uuid),
      forget: () => Promise.resolve(),
    },
    lifecycles,
    clock,
    chooseAccelerator: (wanted) =>
      wanted === 'kvm'
        ? Promise.reject(new AppError('HOST_PREREQUISITE', 'KVM does not work'))
        : Promise.resolve('tcg'),
  });
  const shown = () => metad.views.get(record.uuid)?.osParameters['rootpw']?.value;
  return { runner, keeper, metad, hypervisor, clock, shown, followed, logged };
}

test('a secret is shown to the guest, and is not told again to a metad that was restarted', async () => {
  const { runner, keeper, metad, shown } = createRunner();
  await runner.start(record, secrets, context);
  assert.equal(shown(), 's3cret');
  metad.views.clear();
  await keeper.republishAll();
  assert.equal(shown(), null);
});

test('secrets that metad lost are known of the instance, logged with its name, and told by its start', async () => {
  const { runner, keeper, metad, logged } = createRunner();
  await runner.start(record, secrets, context);
  assert.deepEqual(runner.running(record.uuid)?.lostSecrets, []);
  metad.views.clear();
  await keeper.republishAll();
  await keeper.republishAll();
  assert.deepEqual(runner.running(record.uuid)?.lostSecrets, ['rootpw']);
  const entries = logged.filter(({ event }) => event === 'secrets.lost');
  assert.deepEqual(entries, [{ event: 'secrets.lost', instance: record.name, names: ['rootpw'] }]);
  await runner.republish(record, secrets);
  assert.deepEqual(runner.running(record.uuid)?.lostSecrets, []);
  const lines: string[] = [];
  const report = { ...context.report, log: (line: string) => void lines.push(line) };
  const started = createRunner();
  await started.runner.start(record, noSecrets, { ...context, report });
  assert.match(
    lines.join('\n'),
    /cannot read its secrets rootpw: .* gnt-instance startup --os-parameters-secret rootpw=@FILE web1/,
  );
});

test('a secret whose telling failed is forgotten all the same', async () => {
  const { runner, keeper, metad, shown } = createRunner();
  await runner.start(record, secrets, context);
  metad.isDown = true;
  await assert.rejects(runner.republish(record, secrets), { code: 'METAD_UNAVAILABLE' });
  metad.isDown = false;
  await keeper.republishAll();
  assert.equal(shown(), null);
});

test('an instance whose guest has powered itself off does not count as running, and starts again', async () => {
  const { runner, hypervisor } = createRunner();
  await runner.start(record, secrets, context);
  hypervisor.machines[0]?.end('guest-shutdown');
  assert.equal(runner.isRunning(record.uuid), false);
  await runner.start(record, secrets, context);
  assert.equal(runner.isRunning(record.uuid), true);
});

test('a guest that came is welcomed again after a failure, resumed and heard once', async () => {
  const { runner, keeper, metad, hypervisor, followed } = createRunner();
  const files = { disks: [], seed: null };
  const { signal } = context;
  await runner.expect(record, { accelerator: 'tcg', startedAtMs: 0, files, secrets, signal });
  metad.isDown = true;
  await assert.rejects(runner.welcome(record), { code: 'METAD_UNAVAILABLE' });
  metad.isDown = false;
  assert.equal(await runner.welcome(record), true);
  assert.equal(hypervisor.machines[0]?.resumes, 1);
  assert.deepEqual(followed, [record.uuid]);
  assert.equal(runner.running(record.uuid)?.kind, 'run');
  await keeper.kill(record.uuid);
  assert.equal(await runner.welcome(record), false);
});

test('what would keep the instance from starting is refused before it is installed', async () => {
  const { runner } = createRunner();
  const refused = [
    instanceRecord({ nics: [{ link: 'gnt-no-bridge' }] }),
    instanceRecord({ hvparams: { accel: 'kvm' } }),
    instanceRecord({ hvparams: { kernel_path: '/nonexistent/vmlinuz' } }),
  ];
  for (const instance of refused)
    await assert.rejects(runner.checkRunnable(instance), { code: 'HOST_PREREQUISITE' });
  await assert.rejects(
    runner.checkRunnable(instanceRecord({ hvparams: { boot_order: 'floppy' } })),
    {
      code: 'VALIDATION',
    },
  );
  await runner.checkRunnable(instanceRecord({ nics: [{ mode: 'user' }] }));
});

test('what an instance is installed from is asked for in installations alone', async () => {
  const { runner } = createRunner();
  const onUserNic = { nics: [{ mode: 'user' as const }] };
  const gone = [
    { accel: 'kvm' as const },
    { cdrom_image_path: '/nonexistent/medium.iso' },
    { kernel_path: '/nonexistent/vmlinuz' },
    { boot_order: 'network' },
  ].map((installParameters) => instanceRecord({ ...onUserNic, installParameters }));
  for (const instance of gone) {
    await runner.checkRunnable(instance);
    await assert.rejects(runner.checkInstallable(instance), {
      code: /^(HOST_PREREQUISITE|VALIDATION)$/,
    });
  }
});

test('what is no file at all is not to be made readable', async () => {
  const { runner } = createRunner();
  const folder = instanceRecord({ hvparams: { kernel_path: tmpdir() } });
  await assert.rejects(runner.checkRunnable(folder), { message: `${tmpdir()} is not a file` });
});

test('the seed disk has a name until QEMU has it open, also where QEMU does not start', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-seed-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const { runner, hypervisor } = createRunner(dir);
  const seeded = { ...record, seedDisk: true };
  const seed = join(dir, record.uuid, 'seed.img');
  await mkdir(join(dir, record.uuid));
  const wasThere: boolean[] = [];
  const start = hypervisor.start.bind(hypervisor);
  t.mock.method(hypervisor, 'start', (...args: Parameters<typeof start>) => {
    wasThere.push(args[0].disks.some(({ path }) => path === seed) && existsSync(seed));
    return start(...args);
  });
  hypervisor.failure = new Error('no QEMU');
  await assert.rejects(runner.start(seeded, secrets, context), /no QEMU/);
  assert.equal(existsSync(seed), false);
  hypervisor.failure = undefined;
  await runner.start(seeded, secrets, context);
  assert.equal(existsSync(seed), false);
  assert.deepEqual(wasThere, [true, true]);
});

test('a reboot that stops and starts has the guest go off, and tells it why', async () => {
  const announced: (readonly unknown[])[] = [];
  const lifecycles = Object.assign(createLabLifecycles(), {
    announce: (...how: readonly unknown[]) => {
      announced.push(how);
      return Promise.reject(new Error('seen'));
    },
  });
  const { runner } = createRunner('/nonexistent', lifecycles);
  await runner.start(record, secrets, context);
  await assert.rejects(runner.reboot(record, 60, context, 'full'), /seen/);
  await assert.rejects(runner.stop(record, 60, context, 'terminate'), /seen/);
  assert.deepEqual(announced, [
    [record.uuid, 'stop', 'reboot'],
    [record.uuid, 'terminate'],
  ]);
});

test('a reboot tells a decommission list that failed before its next run begins', async () => {
  let state: 'failed' | 'booting' = 'failed';
  const lifecycles = Object.assign(createLabLifecycles(), {
    announce: () => Promise.resolve(0),
    state: () => state,
    current: () => ({ state, kind: 'reboot', reason: 'its list did not end' }),
    begin: () => Promise.resolve(void (state = 'booting')),
  });
  const { runner } = createRunner('/nonexistent', lifecycles);
  await runner.start(record, secrets, context);
  state = 'failed';
  assert.equal(await runner.reboot(record, 0, context, 'full'), 'its list did not end');
  assert.equal(await runner.reboot(record, 0, context, 'full'), null);
});

test('a reboot that is cancelled while the guest is asked leaves nothing announced', async () => {
  const withdrawn: string[] = [];
  const lifecycles = Object.assign(createLabLifecycles(), {
    isListening: () => true,
    withdraw: (uuid: string) => Promise.resolve(void withdrawn.push(uuid)),
  });
  const { runner } = createRunner('/nonexistent', lifecycles);
  await runner.start(record, secrets, context);
  const cancelled = { ...context, signal: AbortSignal.abort(new Error('cancelled')) };
  await assert.rejects(runner.reboot(record, 60, cancelled, 'soft'));
  assert.deepEqual(withdrawn, [record.uuid]);
});
