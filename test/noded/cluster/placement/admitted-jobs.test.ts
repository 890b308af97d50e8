import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import {
  admittedJobs,
  type AdmittedJobsDependencies,
  isPassedOn,
  namedOfThisHost,
  wantedBy,
} from '../../../../noded/cluster/placement/admitted-jobs.ts';
import { createOpcode, parseOpcode } from '../../support/opcodes.ts';

interface Scene {
  /** Code of the refusal of a part of this node. */
  readonly lacks?: { readonly os?: AppError; readonly nic?: AppError; readonly job?: AppError };
}

function lab({ lacks = {} }: Scene = {}) {
  const calls: string[] = [];
  const look = (name: string, failure: AppError | undefined) => () => {
    calls.push(name);
    return failure === undefined ? Promise.resolve() : Promise.reject(failure);
  };
  const admission = {
    becomes: (id: number) => void calls.push(`becomes ${id}`),
    withdraw: () => void calls.push('withdraw'),
  };
  const dependencies = {
    room: {
      note: () => (calls.push('note'), admission),
      admit: () => (calls.push('admit'), Promise.resolve(admission)),
    },
    osRegistry: { find: look('os', lacks.os) },
    clusters: { load: () => Promise.resolve({ defaultOs: 'default' }) },
    nicTaps: { check: look('nic', lacks.nic) },
  } as unknown as AdmittedJobsDependencies;
  const submit = async () => {
    await look('submit', lacks.job)();
    return 7;
  };
  const jobs = admittedJobs(dependencies)({ submit } as never);
  return { calls, submit: jobs.submit ?? assert.fail() };
}
const NEW = createOpcode({ osType: 'debian', nics: [{ mode: 'user' }] });
const PLACED = { placement: ['node1: room'] };

test('room is noted for a new instance, and reserved for an instance that was placed here', async () => {
  const given = lab();
  assert.equal(await given.submit(NEW, {}), 7);
  assert.deepEqual(given.calls, ['note', 'submit', 'becomes 7']);
  const placed = lab();
  await placed.submit(NEW, PLACED);
  assert.deepEqual(placed.calls, ['os', 'nic', 'admit', 'submit', 'becomes 7']);
});

test('nothing is reserved for other operations and for trials', async () => {
  const { calls, submit } = lab();
  await submit(parseOpcode({ opcode: 'INSTANCE_STARTUP', name: 'web1' }), {});
  await submit(NEW, { ...PLACED, isDryRun: true });
  assert.deepEqual(calls, ['submit', 'submit']);
});

test('a reservation is withdrawn when the job is refused', async () => {
  const { calls, submit } = lab({ lacks: { job: new AppError('INSTANCE_EXISTS', 'x') } });
  await assert.rejects(submit(NEW, PLACED), { code: 'INSTANCE_EXISTS' });
  assert.deepEqual(calls.slice(-2), ['submit', 'withdraw']);
});

test('a placed instance whose OS or bridge is missing here is passed on to another node', async () => {
  const nic = new AppError('HOST_PREREQUISITE', 'no bridge', { hint: 'make it' });
  const refused = await lab({ lacks: { nic } })
    .submit(NEW, PLACED)
    .then(
      () => assert.fail(),
      (error: unknown) => error,
    );
  assert.ok(isPassedOn(refused));
  assert.deepEqual(
    [refused.code, refused.message, refused.hint],
    ['NO_ROOM', 'no bridge', 'make it'],
  );
  for (const code of ['OS_NOT_FOUND', 'OS_INVALID', 'OS_VARIANT'] as const) {
    const os = new AppError(code, 'x');
    await assert.rejects(lab({ lacks: { os } }).submit(NEW, PLACED), (error) => isPassedOn(error));
  }
  assert.ok(!isPassedOn(new AppError('INSTANCE_EXISTS', 'x')));
  assert.ok(!isPassedOn(new Error('x')));
});

test('the demand of an instance is that of its record; a contradictory request has none', () => {
  const wanted = wantedBy(
    createOpcode({
      ...{ osType: 'debian', tags: ['a'], beparams: { memoryMiB: 64, vcpus: 2 } },
      disks: [{ sizeBytes: 1024 }, { sizeBytes: 512 }],
    }),
  );
  assert.deepEqual(
    [wanted?.memoryMiB, wanted?.vcpus, wanted?.diskBytes, wanted?.volumeBytes, wanted?.tags],
    [64, 2, 1536, 0, ['a']],
  );
  assert.equal(
    wantedBy(createOpcode({ diskTemplate: 'plain', disks: [{ sizeBytes: 512 }] }))?.diskBytes,
    0,
  );
});

test('a file, an export and an imported appliance bind a request to the asked node', () => {
  for (const [given, named] of [
    [{ osImage: 'https://x/a' }, undefined],
    [{ osImage: '/a' }, '/a'],
    [{ osImage: 'debian/12', personalizationPackage: '/p' }, '/p'],
    [{ hvparams: { kernel_path: '/k' } }, '/k'],
    [{ installParameters: { cdrom_image_path: '/c' } }, '/c'],
    [{ installParameters: { cdrom_image_path: 'http://x/c' } }, undefined],
    [{ importFrom: 'web1' }, 'web1'],
    [{ osImage: '/a', appliance: 'own' }, 'own'],
    [{ appliance: 'built' }, undefined],
  ] as const)
    assert.equal(namedOfThisHost(createOpcode(given)), named, JSON.stringify(given));
});
