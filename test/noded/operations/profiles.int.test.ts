import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { redactOpcode } from '#shared/contract/redact-opcode.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { loadParameters } from '../../../noded/instances/parameters/load-parameters.ts';
import { describeParameters } from '../../../noded/instances/parameters/os-parameters.ts';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import {
  modifyProfileHandler,
  refuseUnknownProfiles,
  removeProfileHandler,
} from '../../../noded/operations/profiles.ts';
import { createClusterRepository } from '../../../noded/records/cluster-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { parseOpcode } from '../support/opcodes.ts';
import { instanceRecord } from '../support/records.ts';

async function createLab(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-profiles-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const store = createSqliteStore({ path: join(dir, 'store.sqlite') });
  t.after(() => store.close());
  const clusters = createClusterRepository(store, new ManualClock());
  const there = { users: [instanceRecord({ name: 'web1', profiles: ['web', 'base'] })] };
  const instances = { list: () => Promise.resolve(there.users) } as never; // the only method in use
  const run = async (input: OpcodeInput): Promise<void> => {
    const opcode = parseOpcode(input);
    const { signal } = new AbortController();
    const context = {} as JobContext; // these operations report nothing
    if (opcode.opcode === 'PROFILE_SET_PARAMS')
      await (
        await modifyProfileHandler({ clusters }).prepare(opcode, signal)
      )(context);
    else if (opcode.opcode === 'PROFILE_REMOVE')
      await (
        await removeProfileHandler({ clusters, instances }).prepare(opcode, signal)
      )(context);
    else assert.fail(opcode.opcode);
  };
  const set = (name: string, osParameters: Record<string, string | null>) =>
    run({ opcode: 'PROFILE_SET_PARAMS', name, osParameters });
  return { clusters, run, set, there };
}

test('each layer counts above those below it: global, OS, variant, profiles, instance', async (t) => {
  const { clusters, set } = await createLab(t);
  const all = (value: string, ...names: string[]) =>
    Object.fromEntries(names.map((name) => [name, value]));
  await set('global', all('global', 'a', 'b', 'c', 'd', 'e', 'f'));
  for (const [name, names] of [
    ['debian', ['b', 'c', 'd', 'e', 'f']],
    ['debian+small', ['c', 'd', 'e', 'f']],
  ] as const)
    await clusters.updateOs(name, (os) => ({ ...os, osParameters: all(name, ...names) }));
  await set('base', all('base', 'd', 'e', 'f'));
  await set('web', all('web', 'e', 'f'));
  const instance = instanceRecord({
    ...{ osType: 'debian+small', profiles: ['web', 'base'], osParameters: { f: 'own' } },
  });
  const described = describeParameters(await loadParameters(instance, clusters));
  const found = Object.entries(described).map(([name, { value, source }]) => [name, value, source]);
  assert.deepEqual(found.sort(), [
    ['a', 'global', 'profile global'],
    ['b', 'debian', 'os debian'],
    ['c', 'debian+small', 'os debian+small'],
    ['d', 'base', 'profile base'],
    ['e', 'web', 'profile web'],
    ['f', 'own', 'instance'],
  ]);
  const other = instanceRecord({ osType: 'debian+small', profiles: ['base', 'web'] });
  assert.equal((await loadParameters(other, clusters)).get('e')?.value, 'base');
});

test('a parameter that becomes private in a profile is not public any more', async (t) => {
  const { clusters, run, set } = await createLab(t);
  await set('web', { key: 'SHOWN', other: 'x' });
  const osParametersPrivate = { key: 'HIDDEN' };
  await run({ opcode: 'PROFILE_SET_PARAMS', name: 'web', osParametersPrivate });
  await set('web', { other: null });
  const profile = await clusters.loadProfile('web');
  assert.deepEqual(profile?.osParameters, {});
  assert.deepEqual(profile?.osParametersPrivate, osParametersPrivate);
});

test('a profile that an instance names is not removed; one that nobody has is named', async (t) => {
  const { clusters, run, set, there } = await createLab(t);
  await set('web', { a: '1' });
  await assert.rejects(run({ opcode: 'PROFILE_REMOVE', name: 'web' }), (error) => {
    assert.ok(isAppError(error, 'CONFLICT'));
    assert.match(error.message, /web1/);
    return true;
  });
  await assert.rejects(refuseUnknownProfiles(['wbe'], clusters), (error) => {
    assert.ok(isAppError(error, 'NOT_FOUND'));
    assert.equal(error.hint, 'Did you mean web?');
    return true;
  });
  there.users = [];
  await run({ opcode: 'PROFILE_REMOVE', name: 'web' });
  assert.equal(await clusters.loadProfile('web'), undefined);
  await assert.rejects(run({ opcode: 'PROFILE_REMOVE', name: 'web' }), { code: 'NOT_FOUND' });
});

test('a profile takes no secret, and its private values are in no record of a job', () => {
  assert.throws(() =>
    parseOpcode({
      ...{ opcode: 'PROFILE_SET_PARAMS', name: 'web' },
      ...{ osParametersSecret: { a: 'x' } },
    }),
  );
  const osParametersPrivate = { license: 'HIDDEN' };
  const opcode = parseOpcode({ opcode: 'PROFILE_SET_PARAMS', name: 'web', osParametersPrivate });
  assert.ok(!JSON.stringify(redactOpcode(opcode)).includes('HIDDEN'));
});
