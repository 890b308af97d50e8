import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { bootEnv, bootParam, bootTemplate } from '#shared/contract/boot-env.ts';
import { redactOpcode } from '#shared/contract/redact-opcode.ts';
import type { ProfileRecord } from '#shared/contract/profile.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import type { Store, Write } from '#shared/store/store.ts';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import {
  removeBootObjectHandler,
  setBootContentHandler,
} from '../../../noded/operations/boot-content.ts';
import { createClusterRepository } from '../../../noded/records/cluster-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { parseOpcode } from '../support/opcodes.ts';
import { instanceRecord } from '../support/records.ts';
import { startRedis } from '../support/redis-server.ts';

const debian = bootEnv.parse({
  Name: 'debian-install',
  OS: { Name: 'debian-12', SupportedArchitectures: { amd64: { Kernel: 'linux' } } },
  Loaders: {},
  Templates: [{ Name: 'seed', Path: '{{.Machine.Path}}/seed', ID: 'seed.tmpl' }],
});
const seed = bootTemplate.parse({ ID: 'seed.tmpl', Contents: 'SEED' });
const disk = bootParam.parse({ Name: 'disk', Schema: { type: 'string' } });
const content = { bootEnvs: [debian], templates: [seed], params: [disk] };

const engines = {
  sqlite: async (t: TestContext): Promise<Store> => {
    const dir = await mkdtemp(join(tmpdir(), 'gnt-boot-store-'));
    t.after(() => rm(dir, { recursive: true, force: true }));
    return createSqliteStore({ path: join(dir, 'store.sqlite') });
  },
  redis: async (t: TestContext): Promise<Store> => {
    const server = await startRedis();
    t.after(() => server.stop());
    const url = `unix:${server.socket}`;
    return createRedisStore({ server: { url }, prefix: '{boot}', logger: silentLogger });
  },
};

for (const [name, open] of Object.entries(engines)) {
  test(`${name}: boot content is kept as it was given, and is found by its names`, async (t) => {
    const store = await open(t);
    t.after(() => store.close());
    const clusters = createClusterRepository(store, new ManualClock());
    assert.equal(await clusters.loadBootEnv('debian-install'), undefined);
    await clusters.saveBootContent(content);
    assert.deepEqual(await clusters.loadBootEnv('debian-install'), debian);
    assert.deepEqual(await clusters.listBootEnvs(), [debian]);
    assert.deepEqual(await clusters.listTemplates(), [seed]);
    assert.deepEqual(await clusters.listParams(), [disk]);
    const other = { ...seed, Contents: 'OTHER' };
    await clusters.saveBootContent({ bootEnvs: [], templates: [other], params: [] });
    assert.deepEqual(await clusters.listTemplates(), [other]);
    const unused = (): Promise<void> => Promise.resolve();
    await clusters.removeBootObject({ kind: 'template', name: 'seed.tmpl' }, unused);
    assert.deepEqual(await clusters.listTemplates(), []);
    assert.deepEqual(await clusters.listBootEnvs(), [debian]);
  });
}

async function createLab(t: TestContext) {
  const store = await engines.sqlite(t);
  t.after(() => store.close());
  const clusters = createClusterRepository(store, new ManualClock());
  const there = { users: [instanceRecord({ name: 'web1', bootEnv: 'debian-install' })] };
  const instances = { list: () => Promise.resolve(there.users) } as never; // the only method in use
  const { signal } = new AbortController();
  const context = {} as JobContext; // these operations report nothing
  const set = async (given: object): Promise<void> => {
    const opcode = parseOpcode({ opcode: 'BOOTENV_SET', ...given });
    assert.ok(opcode.opcode === 'BOOTENV_SET');
    await (
      await setBootContentHandler({ clusters }).prepare(opcode, signal)
    )(context);
  };
  const remove = async (kind: 'bootEnv' | 'template', name: string): Promise<void> => {
    const opcode = parseOpcode({ opcode: 'BOOTENV_REMOVE', object: { kind, name } });
    assert.ok(opcode.opcode === 'BOOTENV_REMOVE');
    await (
      await removeBootObjectHandler({ clusters, instances }).prepare(opcode, signal)
    )(context);
  };
  return { clusters, set, remove, there };
}

test('a bundle is taken whole or not at all, and its profiles keep what they have', async (t) => {
  const { clusters, set } = await createLab(t);
  await clusters.updateProfile('web', (profile) => ({
    ...profile,
    osParameters: { a: 'old', b: 'kept' },
    osParametersPrivate: { c: 'private' },
  }));
  const twice = { ...content, templates: [seed, seed] };
  await assert.rejects(set(twice), { code: 'BOOTENV_INVALID' });
  const local = { bootEnvs: [debian, { ...debian, Name: 'local' }] };
  await assert.rejects(set(local), { code: 'BOOTENV_INVALID' });
  assert.deepEqual(await clusters.listBootEnvs(), []);
  const shown = { ...content, profiles: [{ name: 'web', osParameters: { c: 'public' } }] };
  await assert.rejects(set(shown), (error) => {
    assert.ok(isAppError(error, 'BOOTENV_INVALID'));
    assert.match(error.message, /profile 'web' .*'c'/);
    return true;
  });
  const big = 'x'.repeat(65_536);
  const huge = Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`p${at}`, big]));
  const profiles = [{ name: 'web', osParameters: huge }];
  await assert.rejects(set({ ...content, profiles }), { code: 'VALIDATION' });
  assert.deepEqual(await clusters.listBootEnvs(), []);
  await set({ ...content, profiles: [{ name: 'web', osParameters: { a: 'new', d: 'too' } }] });
  const profile = await clusters.loadProfile('web');
  assert.deepEqual(profile?.osParameters, { a: 'new', b: 'kept', d: 'too' });
  assert.deepEqual(profile.osParametersPrivate, { c: 'private' });
});

test('content and profiles are one commit, planned again when somebody came between', async (t) => {
  const store = await engines.sqlite(t);
  t.after(() => store.close());
  const clusters = createClusterRepository(store, new ManualClock());
  const broken = () => {
    throw new Error('no');
  };
  const save = clusters.saveBootContent(content, [{ name: 'web', change: broken }]);
  await assert.rejects(save, /no/);
  assert.deepEqual(await clusters.listBootEnvs(), []);
  // Another commit, after the profile was read.
  let commits = 0;
  const commit = store.commit.bind(store);
  t.mock.method(store, 'commit', async (writes: readonly Write[]) => {
    commits += 1;
    if (commits === 1) {
      await clusters.updateProfile('web', (profile) => ({
        ...profile,
        osParameters: { a: 'other' },
      }));
    }
    return commit(writes);
  });
  const change = (profile: ProfileRecord): ProfileRecord => ({
    ...profile,
    osParameters: { ...profile.osParameters, b: 'mine' },
  });
  await clusters.saveBootContent(content, [{ name: 'web', change }]);
  assert.equal(commits, 3);
  assert.deepEqual((await clusters.loadProfile('web'))?.osParameters, { a: 'other', b: 'mine' });
  assert.deepEqual(await clusters.listBootEnvs(), [debian]);
});

test('templates and what BootEnvs have in them are bounded together', async (t) => {
  const { set } = await createLab(t);
  const Contents = 'x'.repeat(512 * 1024);
  const of = (Name: string, count: number) => ({
    ...{ ...debian, Name },
    Templates: Array.from({ length: count }, (_, at) => ({
      ...{ Name: `${at}`, Path: `{{.Machine.Path}}/${at}`, ID: '', Contents },
    })),
  });
  await set({ bootEnvs: [of('one', 16)] });
  await set({ bootEnvs: [of('one', 16)], templates: [seed] });
  await assert.rejects(set({ bootEnvs: [of('two', 16)] }), { code: 'BOOTENV_INVALID' });
});

test('what is in use is not removed, and says by whom; the nearest name is told', async (t) => {
  const { clusters, set, remove, there } = await createLab(t);
  await set(content);
  const refused = (kind: 'bootEnv' | 'template', name: string, expected: RegExp) =>
    assert.rejects(remove(kind, name), (error) => {
      assert.ok(isAppError(error));
      assert.match(`${error.code} ${error.message} ${error.hint}`, expected);
      return true;
    });
  await refused('bootEnv', 'debian-install', /CONFLICT .* web1/);
  await refused('template', 'seed.tmpl', /CONFLICT .*boot environment debian-install/);
  await refused('bootEnv', 'debian-instal', /BOOTENV_NOT_FOUND .*Did you mean debian-install/);
  there.users = [];
  await remove('bootEnv', 'debian-install');
  await remove('template', 'seed.tmpl');
  assert.deepEqual(await clusters.listBootEnvs(), []);
});

test('the record of a job has names, and no content', () => {
  const told = redactOpcode(parseOpcode({ opcode: 'BOOTENV_SET', ...content }));
  assert.deepEqual(told['templates'], ['seed.tmpl']);
  assert.ok(!JSON.stringify(told).includes('SEED'));
});
