import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { bootEnv, bootParam } from '#shared/contract/boot-env.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { opcode } from '#shared/contract/opcode.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { openBootArchives } from '../../../noded/netboot/archives.ts';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import { destroyIsoHandler } from '../../../noded/operations/destroy-iso.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { createClusterRepository } from '../../../noded/records/cluster-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { instanceRecord } from '../support/records.ts';

const ISO = 'debian.iso';

async function createLab(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-destroy-iso-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const store = createSqliteStore({ path: join(dir, 'store.sqlite') });
  t.after(() => store.close());
  const clusters = createClusterRepository(store, new ManualClock());
  await clusters.ensure();
  const archivesDir = join(dir, 'archives');
  const archives = await openBootArchives(archivesDir, () => new Set());
  await using target = await archives.create('a'.repeat(64), 1 << 20);
  const written = `kernel0 6 linux\n${'gnt-index 6'.padEnd(63)}\n`;
  await writeFile(target.path, written, { flag: 'r+' });
  const unread = { path: '', sizeBytes: 0, verifyUnchanged: async () => undefined };
  await target.keep(ISO, written.length, unread, AbortSignal.timeout(10_000));
  const all: InstanceRecord[] = [];
  const instances = { list: () => Promise.resolve(all) };
  const handler = destroyIsoHandler({
    ...{ archives, clusters, instances },
  } as unknown as OperationDependencies);
  const destroy = async (isoFile = ISO): Promise<void> => {
    const asked = opcode.parse({ opcode: 'BOOTENV_DESTROY_ISO', isoFile });
    if (asked.opcode !== 'BOOTENV_DESTROY_ISO') throw new Error('another opcode');
    const run = await handler.prepare(asked, new AbortController().signal);
    // The job only uses its reporter.
    await run({ report: { log: () => undefined } } as unknown as JobContext);
  };
  return { archivesDir, clusters, destroy, all };
}

test('an archive that something names is refused with who it is, and is gone when nothing does', async (t) => {
  const { archivesDir, clusters, destroy, all } = await createLab(t);
  const isRefusedFor = (user: RegExp) =>
    assert.rejects(destroy(), (error) => {
      assert.ok(isAppError(error, 'CONFLICT'));
      assert.match(error.message, user);
      return true;
    });
  const OS = { Name: 'debian-12', SupportedArchitectures: { amd64: { IsoFile: ISO } } };
  const named = bootEnv.parse({ Name: 'debian-install', OS, Loaders: {} });
  await clusters.saveBootContent({ bootEnvs: [named], templates: [], params: [] });
  await isRefusedFor(/boot environment debian-install$/);
  await clusters.removeBootObject({ kind: 'bootEnv', name: 'debian-install' }, async () => {});

  const customize = { 'bootenv-customize': JSON.stringify({ other: { OS } }) };
  all.push(instanceRecord({ name: 'web1', osParameters: customize }));
  await isRefusedFor(/instance web1$/);
  all.length = 0;
  const escaped = customize['bootenv-customize'].replace('debian.iso', '\\u0064ebian\\u002eiso');
  assert.ok(!escaped.includes(ISO));
  all.push(instanceRecord({ name: 'web2', osParameters: { 'bootenv-customize': escaped } }));
  await isRefusedFor(/instance web2$/);
  all.length = 0;
  const byDefault = { Name: 'bootenv-customize', Schema: { default: { other: { OS } } } };
  const param = bootParam.parse(byDefault);
  await clusters.saveBootContent({ bootEnvs: [], templates: [], params: [param] });
  await isRefusedFor(/param bootenv-customize$/);
  await clusters.removeBootObject({ kind: 'param', name: param.Name }, async () => {});
  const profile = { schema: 1, osParametersPrivate: {} } as const;
  const change = (osParameters: Record<string, string>) =>
    clusters.updateProfile('web', () => ({ ...profile, name: 'web', osParameters }));
  await change(customize);
  await isRefusedFor(/profile web$/);
  await change({});

  await assert.rejects(destroy('debain.iso'), (error) => {
    assert.ok(isAppError(error, 'NOT_FOUND'));
    assert.match(error.hint ?? '', /Did you mean debian\.iso/);
    return true;
  });
  await destroy();
  assert.deepEqual(await readdir(archivesDir), ['names.json']);
});
