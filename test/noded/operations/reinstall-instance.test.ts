import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { reinstallInstanceHandler } from '../../../noded/operations/reinstall-instance.ts';
import type { InstallRequest } from '../../../noded/provision/install/install-request.ts';
import { FAILED } from '../../../noded/records/install-states.ts';
import { instanceRecord } from '../support/records.ts';
import { createOperationLab, JOB, type World } from './operation-lab.ts';

const web1 = instanceRecord(
  { name: 'web1', osImage: '/srv/image.raw', disks: [{ sizeBytes: 512 }] },
  { installState: 'installed', adminState: 'up' },
);
const RUNNING = { isRunning: () => true };

interface Case {
  readonly stored?: Partial<InstanceRecord>;
  readonly world?: World;
  readonly asked?: Partial<Parameters<typeof inputOf>[0]>;
  /** How the installation ends, which has entered its place; by default with success. */
  readonly end?: (request: InstallRequest) => Promise<unknown>;
}

const inputOf = (asked: {
  readonly start?: boolean;
  readonly keepOld?: boolean;
  readonly shutdownTimeoutS?: number;
}) => ({ opcode: 'INSTANCE_REINSTALL', name: 'web1', ...asked }) as const;

function reinstall({ stored, world = {}, asked = {}, end }: Case = {}) {
  const requests: InstallRequest[] = [];
  const lab = createOperationLab(
    { ...web1, ...stored },
    {
      hookChecker: { check: async () => ({ documents: [], book: null }) },
      installer: {
        reserve: async () => ({
          enter: async () => void lab.steps.push('place.enter'),
          [Symbol.dispose]: () => undefined,
        }),
        install: async (request: InstallRequest) => {
          requests.push(request);
          await request.place.enter();
          return end === undefined ? request.instance : end(request);
        },
      },
      ...world,
    },
  );
  return { ...lab, requests, ended: lab.run(reinstallInstanceHandler, inputOf(asked)) };
}
const afterPrepare = (steps: readonly string[]): readonly string[] =>
  steps.slice(steps.indexOf('execute') + 1);
const fail = async (): Promise<never> => {
  throw new AppError('SCRIPT_FAILED', 'exit status 3');
};

test('a stopped instance is marked before it is installed, and its disks are settled before that', async () => {
  const { ended, steps, requests, record } = reinstall({ asked: { start: false } });
  assert.deepEqual(await ended, { name: 'web1', uuid: web1.uuid, stages: [] });
  assert.deepEqual(afterPrepare(steps), [
    ...['installer.reserve', 'disks.settle', 'instances.update', 'installer.install'],
    'place.enter',
  ]);
  const { installState, install, beforeReinstall } = record() ?? assert.fail();
  assert.deepEqual([installState, install?.jobId], ['installing', JOB]);
  assert.deepEqual(beforeReinstall, {
    ...{ adminState: 'up', installState: 'installed', install: null },
  });
  const [request = assert.fail()] = requests;
  assert.notEqual(request.instance.instanceId, web1.instanceId);
  assert.equal(request.instance.instanceId, request.changes?.instanceId);
  assert.deepEqual([request.isReinstall, request.dumps], [true, null]);
  await request.giveUpFormerDisks();
  assert.equal(record()?.beforeReinstall, null);
});

test('the new system is started unless the request says otherwise', async () => {
  const { ended, steps } = reinstall();
  await ended;
  assert.equal(steps.at(-1), 'runner.start');
});

test('a running instance is stopped before its installation takes its memory', async () => {
  const { ended, steps } = reinstall({
    world: { runner: RUNNING },
    asked: { shutdownTimeoutS: 9 },
  });
  await ended;
  assert.deepEqual(afterPrepare(steps).slice(-4, -1), [
    'installer.install',
    'runner.stop',
    'place.enter',
  ]);
});

test('a running instance is refused without the time that its guest has to stop', async () => {
  const { ended, steps } = reinstall({ world: { runner: RUNNING } });
  await assert.rejects(ended, { code: 'INSTANCE_STATE', hint: /--shutdown-timeout/ });
  assert.ok(!steps.includes('execute'));
});

for (const [what, asked, checked] of [
  ['is', { keepOld: true }, true],
  ['is not', {}, false],
] as const) {
  test(`room beside the old disks ${what} checked if they are ${checked ? '' : 'not '}to be kept`, async () => {
    const roomBeside = async () => ({ isEnough: false, neededBytes: 2, freeBytes: 1 });
    const { ended } = reinstall({ asked, world: { disks: { roomBeside } } });
    await (checked ? assert.rejects(ended, { code: 'DISK_SPACE' }) : ended);
  });
}

for (const [what, stored, asked, formerDisks] of [
  ['installed disks are kept if there is room', {}, {}, 'keep-if-room'],
  ['a request keeps them in any case', {}, { keepOld: true }, 'keep'],
  ['a request overwrites them', {}, { keepOld: false }, 'overwrite'],
  ['disks of a failed installation are worthless', { installState: 'failed' }, {}, 'worthless'],
] as const) {
  test(`before a reinstallation: ${what}`, async () => {
    const roomBeside = async () => ({ isEnough: true, neededBytes: 1, freeBytes: 2 });
    const { ended, requests } = reinstall({ stored, asked, world: { disks: { roomBeside } } });
    await ended;
    assert.equal(requests[0]?.formerDisks, formerDisks);
  });
}

/** Restores the record as the installer does after a failure that left the old disks. */
const restored = { installState: 'installed', install: null, beforeReinstall: null } as const;

for (const [what, adminState, isStarted] of [
  ['that ran is started again', 'up', true],
  ['that is wanted down stays so', 'down', false],
] as const) {
  test(`after a failure that kept the disks, an instance ${what}`, async () => {
    let isRunning = true;
    const lab = reinstall({
      stored: { adminState },
      asked: { shutdownTimeoutS: 9 },
      world: {
        runner: {
          isRunning: () => isRunning,
          stop: async () => {
            isRunning = false;
          },
        },
      },
      end: async (request) => {
        // The installer has stored the end of the installation.
        const { uuid } = request.instance;
        await lab.dependencies.instances.update(uuid, (now) => ({ ...now, ...restored }));
        return fail();
      },
    });
    await assert.rejects(lab.ended, { code: 'SCRIPT_FAILED' });
    assert.equal(lab.steps.includes('runner.start'), isStarted);
    assert.match(lab.lines.join(), /instance web1 is unchanged/);
  });
}

test('after a failure that destroyed the disks, nothing is started or said to be unchanged', async () => {
  const lab = reinstall({
    world: { runner: RUNNING },
    asked: { shutdownTimeoutS: 9 },
    end: async (request) => {
      const { uuid } = request.instance;
      await lab.dependencies.instances.update(uuid, (now) => ({ ...now, ...FAILED }));
      return fail();
    },
  });
  await assert.rejects(lab.ended, { code: 'SCRIPT_FAILED' });
  assert.deepEqual(lab.lines, []);
  assert.ok(!lab.steps.includes('runner.start'));
});

test('a failure before the instance had to stop leaves it running', async () => {
  const lab = reinstall({
    world: {
      runner: RUNNING,
      installer: {
        reserve: async () => ({ [Symbol.dispose]: () => undefined }),
        install: async () => {
          await lab.dependencies.instances.update(web1.uuid, (now) => ({ ...now, ...restored }));
          return fail();
        },
      },
    },
    asked: { shutdownTimeoutS: 9 },
  });
  await assert.rejects(lab.ended, { code: 'SCRIPT_FAILED' });
  // A restart would warn of a guest that was told to power off.
  assert.deepEqual(lab.lines, [
    'instance web1 is unchanged: its disks and its record are as before',
  ]);
});

test('secrets of an instance are asked for again before anything is stopped', async () => {
  const { ended, steps } = reinstall({ stored: { secretNames: ['licence'] } });
  await assert.rejects(ended, { code: 'SECRETS_NEEDED', message: /: licence$/ });
  assert.ok(!steps.includes('execute'));
});
