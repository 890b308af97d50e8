import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { bootEnv, bootParam } from '#shared/contract/boot-env.ts';
import { viewBoot, type ViewBoot } from '#shared/contract/boot-view.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { Secret } from '#shared/secret/secret.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import type { BootSource } from '../../../../noded/netboot/boot-plan.ts';
import { createBootViews } from '../../../../noded/instances/view/boot-views.ts';
import { noSecrets } from '../../../../noded/instances/parameters/job-secrets.ts';
import { previewBootPlan } from '../../../../noded/instances/view/preview-boot-plan.ts';
import { createClusterRepository } from '../../../../noded/records/cluster-repository.ts';
import { listenOnLoopback } from '../../../lab/listen-on-loopback.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { instanceRecord } from '../../support/records.ts';

const ipxe = { Name: 'ipxe', Path: '{{.Machine.MacAddr "ipxe"}}.ipxe', ID: 'default-ipxe.tmpl' };
const envOf = (Contents: string, amd64: object = {}) =>
  bootEnv.parse({
    ...{ Name: 'rescue', Loaders: {} },
    OS: { Name: 'debian-12', SupportedArchitectures: { amd64 } },
    Templates: [ipxe, { Name: 'seed', Path: '{{.Machine.Path}}/seed', Contents }],
  });

async function createLab(t: TestContext, { askTimeoutMs = 15_000 } = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-boot-views-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const store = createSqliteStore({ path: join(dir, 'store.sqlite') });
  t.after(() => store.close());
  const clusters = createClusterRepository(store, new ManualClock());
  await clusters.ensure();
  const trees = new Map<string, BootSource | null>();
  const sources = { clusters, archives: { find: () => null } };
  const bootViews = createBootViews({
    ...{ sources, logger: silentLogger, askTimeoutMs },
    trees: {
      offer: (uuid, source) => void trees.set(uuid, source),
      forget: (uuid) => void trees.delete(uuid),
    },
  });
  const save = (Contents: string, amd64?: object) =>
    clusters.saveBootContent({ bootEnvs: [envOf(Contents, amd64)], templates: [], params: [] });
  return { clusters, bootViews, sources, save, trees };
}

function textOf(given: ViewBoot | 'kept' | undefined, name: string): string {
  const view = given === 'kept' ? undefined : given;
  const [, file] = Object.entries(view?.files ?? {}).find(([path]) => path.endsWith(name)) ?? [];
  assert.ok(file !== undefined && 'content' in file, JSON.stringify(view));
  return Buffer.from(file.content, 'base64').toString();
}

const { signal } = new AbortController();

test('what cannot be rendered is refused, and a guest that runs keeps what it was given', async (t) => {
  const { bootViews, save } = await createLab(t);
  const instance = instanceRecord({
    ...{ bootEnv: 'rescue', communication: true, osParameters: { color: 'blue' } },
  });
  await save('{{.Param "color"}}\n');
  await bootViews.check(instance, noSecrets, signal);
  const first = await bootViews.forRun(instance, noSecrets);
  assert.ok(viewBoot.safeParse(first).success);
  assert.equal(textOf(first, '/seed'), 'blue\n');
  await save('line\n{{.Param "colour"}}\n');
  await assert.rejects(bootViews.check(instance, noSecrets, signal), (error) => {
    assert.ok(isAppError(error, 'BOOTENV_RENDER'));
    assert.match(`${error.message} ${JSON.stringify(error.details)}`, /seed.*2.*colour/s);
    return true;
  });
  assert.deepEqual(await bootViews.forRun(instance, noSecrets), first);
  bootViews.forget(instance.uuid);
  // A restarted daemon does not know the boot, but metad does.
  assert.equal(await bootViews.forRun(instance, noSecrets), 'kept');
  await assert.rejects(bootViews.forStart(instance, noSecrets), { code: 'BOOTENV_RENDER' });
});

test('what a guest was given is rendered anew for a change of its own alone', async (t) => {
  const { bootViews, sources, save } = await createLab(t);
  const reads = t.mock.method(sources.clusters, 'listTemplates');
  const blue = { bootEnv: 'rescue', communication: true, osParameters: { color: 'blue' } };
  const instance = instanceRecord(blue);
  await save('{{.Param "color"}}\n');
  // The state after a restart of the daemon.
  assert.equal(textOf(await bootViews.asGiven(instance), '/seed'), 'blue\n');
  const red = { ...instance, osParameters: { color: 'red' } };
  for (let event = 0; event < 5; event += 1)
    assert.equal(textOf(await bootViews.asGiven(red), '/seed'), 'blue\n');
  assert.equal(reads.mock.callCount(), 1);
  assert.equal(textOf(await bootViews.forRun(red, noSecrets), '/seed'), 'red\n');
  assert.equal(textOf(await bootViews.asGiven(red), '/seed'), 'red\n');
  assert.equal(await bootViews.asGiven({ ...red, bootEnv: 'local' }), undefined);
});

test('what was given last is offered again with what it loads from: metad may not have it', async (t) => {
  const { bootViews, clusters, save, trees } = await createLab(t);
  const url = 'http://127.0.0.1:9/debian';
  const repository = { tag: 'main', os: ['debian-12'], arch: 'amd64', url, installSource: true };
  const param = bootParam.parse({ Name: 'package-repositories', Schema: { type: 'array' } });
  await clusters.saveBootContent({ bootEnvs: [], templates: [], params: [param] });
  await clusters.update((cluster) => ({ ...cluster, packageMirrors: { debian: url } }));
  const instance = instanceRecord({
    ...{ bootEnv: 'rescue', communication: true },
    osParameters: { 'package-repositories': JSON.stringify([repository]) },
  });
  await save('x', { Kernel: 'linux' });
  await bootViews.forRun(instance, noSecrets);
  assert.deepEqual(trees.get(instance.uuid), { kind: 'repository', url });
  await save('{{.Param "gone"}}', { Kernel: 'linux' });
  for (const again of [
    () => bootViews.asGiven(instance),
    () => bootViews.forRun(instance, noSecrets),
  ]) {
    trees.clear();
    await again();
    assert.deepEqual(trees.get(instance.uuid), { kind: 'repository', url });
  }
  await bootViews.asGiven({ ...instance, bootEnv: 'local' });
  assert.equal(trees.get(instance.uuid), null);
});

test('a run whose secret alone makes it right keeps its files, and no value of a secret', async (t) => {
  const { bootViews, save } = await createLab(t);
  const instance = instanceRecord({
    ...{ bootEnv: 'rescue', communication: true, osParameters: { key: 'public' } },
  });
  await save('{{if eq (.Param "key") "public"}}{{fail "not for all"}}{{end}}{{.Param "key"}}');
  const osParameters = new Map([['key', new Secret('S3CRET')]]);
  const first = await bootViews.forStart(instance, { ...noSecrets, osParameters });
  assert.equal(textOf(first, '/seed'), 'S3CRET');
  const later = await bootViews.forRun(instance, noSecrets);
  assert.ok(later !== 'kept');
  assert.deepEqual(
    Object.values(later?.files ?? {}).flatMap((file) => ('lost' in file ? [file.lost] : [])),
    [['key']],
  );
});

test('of a run is told what cannot be rendered, and which files have waited for secrets since', async (t) => {
  const { bootViews, save } = await createLab(t);
  const osParameters = new Map([['key', new Secret('S3CRET')]]);
  const instance = instanceRecord({
    ...{ bootEnv: 'rescue', communication: true },
    ...{ osParameters: { color: 'blue' }, osParametersSecret: { key: 'x' } },
  });
  assert.equal(bootViews.state(instance.uuid), null);
  await save('{{.Param "color"}} {{.Param "key"}}\n');
  await bootViews.forStart(instance, { ...noSecrets, osParameters });
  const well = { name: 'rescue', failure: null, lost: [] };
  assert.deepEqual(bootViews.state(instance.uuid), well);
  // metad keeps the boot that it has.
  await bootViews.forRun({ ...instance, tags: ['new'] }, noSecrets);
  assert.deepEqual(bootViews.state(instance.uuid), well);
  const red = { ...instance, osParameters: { color: 'red' } };
  await bootViews.forRun(red, noSecrets);
  const path = `machines/${instance.uuid}/seed`;
  assert.deepEqual(bootViews.state(instance.uuid)?.lost, [{ path, secrets: ['key'] }]);
  await save('{{.Param "colour"}}\n');
  await bootViews.forRun(red, noSecrets);
  assert.equal(bootViews.state(instance.uuid)?.failure?.code, 'BOOTENV_RENDER');
  await save('{{.Param "color"}} {{.Param "key"}}\n');
  await bootViews.forRun(red, { ...noSecrets, osParameters });
  assert.deepEqual(bootViews.state(instance.uuid), well);
  bootViews.forget(instance.uuid);
  assert.equal(bootViews.state(instance.uuid), null);
});

test('a loader that no view takes is refused before anything is changed', async (t) => {
  const { bootViews, clusters } = await createLab(t);
  const wrong = { ...envOf('x'), Loaders: { 'amd64-uefi': 'EFI/BOOT/my loader.efi' } };
  const repository = { tag: 'main', os: ['debian-12'], arch: 'amd64', installSource: true };
  const url = 'http://127.0.0.1:9/debian';
  const packageMirrors = { debian: url };
  await clusters.update((cluster) => ({ ...cluster, packageMirrors }));
  await clusters.saveBootContent({ bootEnvs: [wrong], templates: [], params: [] });
  const instance = instanceRecord({
    ...{ bootEnv: 'rescue', communication: true },
    osParameters: { 'package-repositories': JSON.stringify([{ ...repository, url }]) },
  });
  await assert.rejects(bootViews.check(instance, noSecrets, signal), (error) => {
    assert.ok(isAppError(error, 'BOOTENV_INVALID'));
    assert.match(error.message, /the loader 'EFI\/BOOT\/my loader\.efi'/);
    return true;
  });
});

test('a secret is rendered for who has it, and by name for everybody later', async (t) => {
  const { bootViews, sources, save } = await createLab(t);
  const instance = instanceRecord({
    ...{ bootEnv: 'rescue', communication: true },
    ...{ osParametersSecret: { key: 'x' }, osParametersPrivate: { license: 'PRIVATE-VALUE' } },
  });
  await save('{{.Param "key"}} {{.Param "license" | upper}}\n');
  const osParameters = new Map([['key', new Secret('S3CRET')]]);
  const view = await bootViews.forRun(instance, { ...noSecrets, osParameters });
  assert.equal(textOf(view, '/seed'), 'S3CRET PRIVATE-VALUE\n');
  const later = await bootViews.forRun(instance, noSecrets);
  assert.ok(later !== 'kept');
  const lost = Object.values(later?.files ?? {}).flatMap((file) =>
    'lost' in file ? [file.lost] : [],
  );
  assert.deepEqual(lost, [['key']]);
  await save('{{.Param "gone"}}');
  const kept = await bootViews.forRun(instance, { ...noSecrets, osParameters });
  assert.ok(!JSON.stringify(kept).includes(Buffer.from('S3CRET').toString('base64').slice(0, 6)));

  await save('{{.Param "key"}} {{.Param "license" | upper}}\n');
  const shown = await previewBootPlan(instance, null, sources);
  const seed = shown.files.find(({ path }) => path.endsWith('/seed'));
  assert.equal(seed?.contents, '<redacted> <REDACTED>\n');
});

test('an operator is shown no part of a private value of any type', async (t) => {
  const { clusters, sources, save } = await createLab(t);
  const hidden = {
    creds: '{"password":"hunter2-SECRET","pin":987654321}',
    word: 'hunter2-SECRET',
    level: 'high',
    wrong: 'hunter2-SECRET',
  };
  const instance = instanceRecord({
    ...{ bootEnv: 'rescue', communication: true, osParametersPrivate: hidden },
  });
  const params = [
    { Name: 'creds', Schema: { type: 'object' } },
    { Name: 'word', Schema: { type: ['string'] } },
    { Name: 'level', Schema: { type: 'string', enum: ['low', 'high'] } },
    { Name: 'wrong', Schema: { type: 'object' } },
  ].map((param) => bootParam.parse(param));
  await clusters.saveBootContent({ bootEnvs: [], templates: [], params });
  await save(
    '{{(.Param "creds").password}} {{(.Param "creds").pin}} {{.Param "word" | upper}} {{.Param "level"}}',
  );
  const shown = await previewBootPlan(instance, null, sources);
  const seed = shown.files.find(({ path }) => path.endsWith('/seed'));
  assert.equal(seed?.contents, '<redacted> 0 <REDACTED> low');
  await save('{{.Param "wrong"}}');
  await assert.rejects(previewBootPlan(instance, null, sources), { code: 'BOOTENV_RENDER' });
});

test('kernel and initrds of a repository are asked for before anything is changed', async (t) => {
  const { clusters, bootViews, save, trees } = await createLab(t);
  const asked: string[] = [];
  let held: ServerResponse | undefined;
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    if (request.url === '/debian/linux2') held?.end();
    response.statusCode = request.url?.startsWith('/debian/linux') === true ? 200 : 404;
    if (request.url !== '/debian/linux1' || asked.includes('HEAD /debian/linux2'))
      return response.end();
    // Sequential requests would hang here.
    held = response;
    return undefined;
  });
  const port = await listenOnLoopback(server);
  t.after(() => server.close());
  const url = `http://127.0.0.1:${port}/debian`;
  const repository = { tag: 'main', os: ['debian-12'], arch: 'amd64', url, installSource: true };
  const instance = instanceRecord({
    ...{ bootEnv: 'rescue', communication: true },
    osParameters: { 'package-repositories': JSON.stringify([repository]) },
  });
  const param = bootParam.parse({ Name: 'package-repositories', Schema: { type: 'array' } });
  await clusters.saveBootContent({ bootEnvs: [], templates: [], params: [param] });
  await save('x', { Kernel: 'linux' });
  const check = () => bootViews.check(instance, noSecrets, signal);
  // The mirror is not allowed yet.
  await assert.rejects(check(), { code: 'BOOTENV_NO_SOURCE' });
  assert.deepEqual(asked, []);
  const packageMirrors = { debian: url };
  await clusters.update((cluster) => ({ ...cluster, packageMirrors }));
  await check();
  assert.deepEqual(asked, ['HEAD /debian/linux']);
  const view = await bootViews.forRun(instance, noSecrets);
  assert.ok(view !== 'kept' && view?.hasTree);
  assert.ok(trees.get(instance.uuid));
  await save('x', { Kernel: 'linux1', Initrds: ['linux2'] });
  await check();
  await save('x', { Kernel: 'linux', Initrds: ['initrd.gz'] });
  await assert.rejects(check(), (error) => {
    assert.ok(isAppError(error, 'BOOTENV_NO_SOURCE'));
    assert.match(error.message, /initrd\.gz of .*: the mirror has no such file/);
    return true;
  });
});

test('a mirror that never answers is refused in its time, and a job that is cancelled at once', async (t) => {
  const { clusters, bootViews, save } = await createLab(t, { askTimeoutMs: 300 });
  const server = createServer(() => undefined);
  const url = `http://127.0.0.1:${await listenOnLoopback(server)}/debian`;
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const repository = { tag: 'main', os: ['debian-12'], arch: 'amd64', url, installSource: true };
  const instance = instanceRecord({
    ...{ bootEnv: 'rescue', communication: true },
    osParameters: { 'package-repositories': JSON.stringify([repository]) },
  });
  await clusters.update((cluster) => ({ ...cluster, packageMirrors: { debian: url } }));
  await save('x', { Kernel: 'linux', Initrds: ['initrd.gz'] });
  await assert.rejects(bootViews.check(instance, noSecrets, signal), (error) => {
    assert.ok(isAppError(error, 'BOOTENV_NO_SOURCE'), String(error));
    assert.match(error.message, /linux, initrd\.gz of .*: no answer within 0\.3 s/);
    return true;
  });
  const cancelled = new AbortController();
  server.once('request', () => cancelled.abort(new Error('the job is cancelled')));
  await assert.rejects(
    bootViews.check(instance, noSecrets, cancelled.signal),
    /the job is cancelled/,
  );
});

test('an installation says nothing where its BootEnv says so, and where it is gone, that is told', async (t) => {
  const { clusters, bootViews } = await createLab(t);
  const silent = { ...envOf('x'), Name: 'quiet-install', Meta: { report: 'none' } };
  const speaking = { ...envOf('x'), Name: 'debian-install', Meta: { report: 'all' } };
  const run = { ...envOf('x'), Meta: { report: 'none' } };
  await clusters.saveBootContent({ bootEnvs: [silent, speaking, run], templates: [], params: [] });
  assert.equal(await bootViews.isSilent({ bootEnv: 'quiet-install' }), true);
  assert.equal(await bootViews.isSilent({ bootEnv: 'debian-install' }), false);
  for (const bootEnv of ['rescue', 'local'])
    assert.equal(await bootViews.isSilent({ bootEnv }), false, 'it installs nothing');
  await assert.rejects(bootViews.isSilent({ bootEnv: 'gone-install' }), {
    code: 'BOOTENV_NOT_FOUND',
  });
});

test('an installation is sent to its packages by the mirror that its channel has', async (t) => {
  const { bootViews, clusters } = await createLab(t);
  const text = '{{range .InstallRepos}}{{.URL}} {{end}}';
  const installing = { ...envOf(text), Name: 'debian-install' };
  await clusters.saveBootContent({ bootEnvs: [installing], templates: [], params: [] });
  const packageMirrors = { deb: 'http://deb.example/pub/' };
  await clusters.update((cluster) => ({ ...cluster, packageMirrors }));
  const common = { os: ['debian-12'], arch: 'amd64' };
  const url = 'http://deb.example/pub/debian';
  const repositories = [
    { ...common, tag: 'main', installSource: true, url },
    { ...common, tag: 'security', securitySource: true, url: 'http://sec.example/debian' },
  ];
  const instance = instanceRecord({
    bootEnv: 'debian-install',
    osParameters: { 'package-repositories': JSON.stringify(repositories) },
  });
  const [deb, security] = [
    'http://169.254.169.254/ganeti/latest/mirror/deb/debian',
    'http://sec.example/debian',
  ];
  assert.equal(
    textOf(await bootViews.forInstall(instance, noSecrets), '/seed'),
    `${deb} ${security} `,
  );
});

test('an installation that would load nothing is refused before anything changes', async (t) => {
  const { bootViews, clusters } = await createLab(t);
  const empty = { ...envOf('x'), Name: 'arm64-install' };
  await clusters.saveBootContent({ bootEnvs: [empty], templates: [], params: [] });
  const instance = instanceRecord({ bootEnv: 'arm64-install', communication: true });
  await assert.rejects(bootViews.check(instance, noSecrets, signal), {
    code: 'BOOTENV_INVALID',
    message: 'BootEnv arm64-install has no Kernel for amd64',
  });
});
