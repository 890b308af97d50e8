import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { StageFailure } from '../../../noded/jobs/stage-failure.ts';
import { createInstanceHandler } from '../../../noded/operations/create-instance.ts';
import type { InstallRequest } from '../../../noded/provision/install/install-request.ts';
import { instanceRecord } from '../support/records.ts';
import { createOperationLab, JOB, type World } from './operation-lab.ts';

type Asked = Omit<Extract<OpcodeInput, { opcode: 'INSTANCE_CREATE' }>, 'opcode' | 'name'>;

/** Creates web1 on a node that has another instance, unless `name` is that of the other one. */
function create(asked: Asked = {}, world: World = {}, name = 'web1') {
  const requests: InstallRequest[] = [];
  const lab = createOperationLab(instanceRecord({ name: 'other' }), {
    ...world,
    hookChecker: { check: async () => ({ documents: [], book: null }) },
    installer: {
      reserve: async () => ({ [Symbol.dispose]: () => undefined }),
      install: async (request: InstallRequest) => {
        requests.push(request);
        return request.instance;
      },
      ...world['installer'],
    },
  });
  const input = { opcode: 'INSTANCE_CREATE', name, osImage: '/srv/a.raw', ...asked } as const;
  return { ...lab, requests, ended: lab.run(createInstanceHandler, input) };
}
const afterPrepare = (steps: readonly string[]): readonly string[] =>
  steps.slice(steps.indexOf('execute') + 1);

test('an instance has its room first, then a record that cannot be started, then its system', async () => {
  const { ended, steps, requests, record } = create();
  const { uuid, installState, install } = (await ended.then(record)) ?? assert.fail();
  assert.deepEqual(await ended, { name: 'web1', uuid, stages: [] });
  assert.deepEqual(afterPrepare(steps), [
    ...['installer.reserve', 'instances.create', 'installer.install', 'runner.start'],
  ]);
  assert.deepEqual([installState, install?.jobId], ['installing', JOB]);
  assert.equal(requests[0]?.formerDisks, 'worthless');
});

test('an instance is checked as a whole before its record exists', async () => {
  const { ended, steps } = create();
  await ended;
  for (const step of [
    ...['images.check', 'disks.checkSpace', 'disks.checkSizes', 'bootViews.check'],
    ...['runner.checkInstallable', 'lifecycles.check'],
  ])
    assert.ok(steps.indexOf(step) >= 0 && steps.indexOf(step) < steps.indexOf('execute'), step);
});

test('an instance is not started if the request says so', async () => {
  const { ended, steps } = create({ start: false });
  await ended;
  assert.equal(steps.at(-1), 'installer.install');
});

test('without an installation, empty disks are all that an instance gets', async () => {
  const { ended, steps, record } = create({ install: false });
  const result = await ended;
  assert.deepEqual(result, { name: 'web1', uuid: record()?.uuid });
  assert.deepEqual(afterPrepare(steps), ['instances.create', 'disks.createEmpty']);
  assert.deepEqual([record()?.installState, record()?.install], ['created', null]);
});

const broken = async (): Promise<never> => {
  throw new AppError('DISK_SPACE', 'the disk is full');
};

test('disks that cannot be made leave neither files nor a record', async () => {
  const { ended, steps, record } = create({ install: false }, { disks: { createEmpty: broken } });
  await assert.rejects(ended, { code: 'DISK_SPACE' });
  assert.deepEqual(afterPrepare(steps).slice(-2), ['disks.remove', 'instances.remove']);
  assert.equal(record(), null);
});

const stageFailure = new StageFailure('SCRIPT_FAILED', 'exit status 3', {
  ...{ stage: 'os-scripts', logTail: ['last line'], hint: 'See the log.' },
});
const failing: World = {
  installer: {
    reserve: async () => ({ [Symbol.dispose]: () => undefined }),
    install: () => Promise.reject(stageFailure),
  },
};

test('a failed instance stays by default, and its error says how to go on', async () => {
  const { ended, steps, record } = create({}, failing);
  await assert.rejects(ended, (error: StageFailure) => {
    assert.deepEqual(
      [error.code, error.stage, error.logTail],
      ['SCRIPT_FAILED', 'os-scripts', ['last line']],
    );
    assert.match(error.hint ?? '', /^See the log.*gnt-instance reinstall web1/s);
    return true;
  });
  assert.equal(record()?.name, 'web1');
  assert.ok(!steps.includes('disks.remove'));
});

test('a failed instance is removed as a whole if the request says so', async () => {
  const { ended, steps, record } = create({ onFailure: 'remove' }, failing);
  await assert.rejects(ended, stageFailure);
  assert.deepEqual(steps.slice(-2), ['disks.remove', 'instances.remove']);
  assert.equal(record(), null);
});

test('an instance that cannot be removed after its failure reports both', async () => {
  const world = { ...failing, disks: { remove: broken } };
  const { ended, record } = create({ onFailure: 'remove' }, world);
  await assert.rejects(ended, {
    code: 'SCRIPT_FAILED',
    message: /exit status 3.*the disk is full/s,
  });
  assert.equal(record()?.name, 'web1');
});

for (const [what, asked, world, name, expected] of [
  ['with a taken name', {}, {}, 'other', { code: 'INSTANCE_EXISTS', hint: /Choose another name/ }],
  ['on an unknown node', { node: 'node9' }, {}, 'web1', { code: 'NODE_NOT_FOUND' }],
  [
    'on a drained node',
    {},
    { nodes: { flagsOf: async () => ({ drained: true, offline: false }) } },
    ...(['web1', { code: 'NODE_DRAINED' }] as const),
  ],
  [
    'with half of a login for its package',
    { personalizationPackage: 'https://example.com/a.tar', personalizationUser: 'me' },
    ...([{}, 'web1', { code: 'SECRETS_NEEDED', message: /both user and password/ }] as const),
  ],
  ['without any system', { osImage: undefined }, {}, 'web1', { code: 'VALIDATION' }],
  [
    'with a profile that does not exist',
    { profiles: ['absent'] as string[] },
    { clusters: { listProfiles: async () => [] } },
    ...(['web1', { message: /absent/ }] as const),
  ],
] as const) {
  test(`an instance ${what} is refused before anything changes`, async () => {
    const { ended, steps } = create(asked, world, name);
    await assert.rejects(ended, expected);
    assert.ok(!steps.includes('execute'));
  });
}

test('a MAC that the node drew may be drawn again, a given one may not', async () => {
  const drawn: (readonly string[])[] = [];
  const lab = create(
    { nics: [{ mode: 'user' }, { mode: 'user', mac: 'aa:bb:cc:00:00:01' }] },
    {
      instances: {
        create: async (planned: object, { drawnMacs }: { drawnMacs: ReadonlySet<string> }) => {
          drawn.push([...drawnMacs]);
          return { ...planned, channel: { ip: '169.254.1.7' } };
        },
      },
    },
  );
  await lab.ended;
  assert.equal(drawn[0]?.length, 1);
  assert.notEqual(drawn[0][0], 'aa:bb:cc:00:00:01');
});
