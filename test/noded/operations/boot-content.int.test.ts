import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { bootTemplate } from '#shared/contract/boot-env.ts';
import { opcode, type OpcodeOf } from '#shared/contract/opcode.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import {
  removeBootObjectHandler,
  setBootContentHandler,
} from '../../../noded/operations/boot-content.ts';
import { createClusterRepository } from '../../../noded/records/cluster-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';

const bootEnvOf = (Name: string, Path: string): object => ({
  ...{ Name, Loaders: {}, OS: { Name: 'debian-12', SupportedArchitectures: { amd64: {} } } },
  Templates: [{ Name: 'seed', Path, Contents: 'x' }],
});

async function createLab(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-boot-content-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const store = createSqliteStore({ path: join(dir, 'store.sqlite') });
  t.after(() => store.close());
  const clusters = createClusterRepository(store, new ManualClock());
  await clusters.ensure();
  const handler = setBootContentHandler({ clusters });
  const prepare = (content: object): ReturnType<typeof handler.prepare> => {
    const parsed = opcode.parse({ opcode: 'BOOTENV_SET', ...content });
    return handler.prepare(parsed as OpcodeOf<'BOOTENV_SET'>, AbortSignal.timeout(10_000));
  };
  return { clusters, prepare };
}

test("a BootEnv whose Path is no machine's is refused with all that came with it", async (t) => {
  const { prepare } = await createLab(t);
  const prepared = (...bootEnvs: readonly object[]): ReturnType<typeof prepare> =>
    prepare({ bootEnvs });
  const good = bootEnvOf('good', '{{.Machine.Path}}/seed');
  await prepared(good);
  for (const path of ['/etc/passwd', '{{.Machine.Path}}/../../x', 'other/seed']) {
    await assert.rejects(prepared(good, bootEnvOf('bad', path)), (error: Error) => {
      assert.equal((error as { code?: unknown }).code, 'BOOTENV_INVALID');
      assert.match(error.message, /BootEnv bad: the Path of the template 'seed'/);
      return true;
    });
  }
});

const scriptOf = (Name: string): object => ({
  ...bootEnvOf(Name, '{{.Machine.Path}}/seed'),
  Templates: [
    { Name: 'ipxe', Path: '{{.Machine.MacAddr "ipxe"}}.ipxe', ID: 'default-ipxe.tmpl' },
    { Name: 'seed', Path: '{{.Machine.Path}}/seed', ID: 'seed.tmpl' },
  ],
});
const run = async (
  execute: Awaited<ReturnType<ReturnType<typeof setBootContentHandler>['prepare']>>,
) => execute({} as Parameters<typeof execute>[0]);

test('one upload changes the script of no BootEnv that another one brought', async (t) => {
  const { clusters, prepare } = await createLab(t);
  const [script, seed] = [
    { ID: 'default-ipxe.tmpl', Contents: '#!ipxe\nmine' },
    { ID: 'seed.tmpl', Contents: 'one' },
  ];
  await run(await prepare({ bootEnvs: [scriptOf('first')], templates: [seed] }));
  const result = await run(
    await prepare({
      bootEnvs: [scriptOf('second')],
      templates: [script, { ...seed, Contents: 'two' }],
    }),
  );
  assert.deepEqual((result as { alsoChanged: unknown }).alsoChanged, ['first'], 'by seed.tmpl');
  assert.deepEqual(
    (await clusters.listTemplates()).map(({ ID }) => ID),
    ['seed.tmpl'],
  );
  const scripts = (await clusters.listBootEnvs()).map(({ Templates: [ipxe] }) => ipxe?.Contents);
  assert.deepEqual(scripts, ['', script.Contents]);
  const again = await run(
    await prepare({ bootEnvs: [], templates: [{ ...seed, Contents: 'two' }] }),
  );
  assert.deepEqual((again as { alsoChanged: unknown }).alsoChanged, [], 'nothing is different');
});

test('a stored script of every BootEnv can be removed, since one is built in', async (t) => {
  const { clusters, prepare } = await createLab(t);
  await run(await prepare({ bootEnvs: [scriptOf('first')] }));
  const template = bootTemplate.parse({ ID: 'default-ipxe.tmpl', Contents: '#!ipxe' });
  await clusters.saveBootContent({ bootEnvs: [], templates: [template], params: [] });
  const handler = removeBootObjectHandler({
    clusters,
    instances: { list: async () => [] } as never,
  });
  const object = { kind: 'template', name: 'default-ipxe.tmpl' } as const;
  const signal = AbortSignal.timeout(10_000);
  const execute = await handler.prepare({ opcode: 'BOOTENV_REMOVE', object }, signal);
  await execute({} as Parameters<typeof execute>[0]);
  assert.deepEqual(await clusters.listTemplates(), []);
});

test('a template that does not parse is refused with all that came with it', async (t) => {
  const { clusters, prepare } = await createLab(t);
  const templates = [
    { ID: 'good.tmpl', Contents: 'x' },
    { ID: 'bad.tmpl', Contents: 'a\n{{if}}' },
  ];
  await assert.rejects(prepare({ templates }), /template bad\.tmpl:2:/);
  assert.deepEqual(await clusters.listTemplates(), []);
});
