import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { osInfo } from '#shared/contract/api.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import type { FoundElsewhere } from '../../../noded/cluster/placement/find-elsewhere.ts';
import { osRoutes } from '../../../noded/api/http/os-routes.ts';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import { modifyOsHandler } from '../../../noded/operations/change-cluster.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { selectOs } from '../../../noded/operations/os-policy.ts';
import { chooseCreateScripts, requireHelper } from '../../../noded/provision/os/choose-scripts.ts';
import { digestDefinition } from '../../../noded/provision/os/definition-content.ts';
import { createOsRegistry } from '../../../noded/provision/os/os-registry.ts';
import { createClusterRepository } from '../../../noded/records/cluster-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { parseOpcode } from '../support/opcodes.ts';

const TRUSTED_AT_MS = Date.UTC(2026, 10, 22, 5, 31, 45);

/** Creates a node with one definition of host scripts, and the administrator's actions on it. */
async function createNode(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-trust-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const os = join(dir, 'os/debian');
  await mkdir(os, { recursive: true });
  await writeFile(join(os, 'ganeti_api_version'), '20\n');
  await writeFile(join(os, 'variants.list'), 'small\nlarge\n');
  await writeFile(join(os, 'parameters.list'), '');
  const change = (name: string, text: string): Promise<void> =>
    writeFile(join(os, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  for (const name of ['create', 'import', 'export', 'rename', 'verify']) await change(name, 'true');
  const clock = new ManualClock(TRUSTED_AT_MS);
  const store = createSqliteStore({ path: join(dir, 'store.sqlite'), clock });
  t.after(() => store.close());
  const clusters = createClusterRepository(store, clock);
  await clusters.ensure();
  const osRegistry = createOsRegistry({ searchPath: [join(dir, 'os')] });
  const told: string[] = [];
  const context = {
    report: { log: (line: string) => void told.push(line) },
  } as unknown as JobContext; // the only part that this operation uses
  const modify = async (name: string, changes: object): Promise<void> => {
    const opcode = parseOpcode({ opcode: 'OS_SET_PARAMS', name, ...changes });
    assert.ok(opcode.opcode === 'OS_SET_PARAMS');
    // The operation uses no other dependencies.
    const dependencies = {
      ...{ clusters, osRegistry, clock, nodeName: 'one' },
      findElsewhere: () => Promise.resolve(node.elsewhere),
    } as unknown as OperationDependencies;
    const handler = modifyOsHandler(dependencies);
    const execution = await handler.prepare(opcode, new AbortController().signal);
    await execution(context);
  };
  const choose = async (osType: string, isSafeInstall = true) => {
    const { os: found, policy } = await selectOs(osType, { osRegistry, clusters });
    return chooseCreateScripts(found.definition, { ...policy, isSafeInstall });
  };
  const info = async () => {
    const overview = { operatingSystems: () => Promise.resolve([]) };
    const routes = osRoutes({ osRegistry, osSearchPath: [], clusters, overview });
    const { signal } = new AbortController();
    const params = { name: 'debian' };
    const asked = { params, query: undefined, body: undefined, signal };
    return osInfo.parse(await routes['GET /v1/os/{name}'](asked));
  };
  const node = {
    ...{ dir, os, clusters, osRegistry, told, change, modify, choose, info },
    /** The content on other nodes. */
    elsewhere: null as FoundElsewhere | null,
  };
  return node;
}

const isMistrusted = (pattern: RegExp) => (error: unknown) => {
  assert.ok(error instanceof AppError);
  assert.equal(error.code, 'OS_NOT_TRUSTED');
  assert.match(error.message, pattern);
  assert.match(error.hint ?? '', /gnt-os (trust|modify --trusted yes) debian/);
  return true;
};

test('a script that was replaced is untrusted again, until an administrator trusts what it is now', async (t) => {
  const node = await createNode(t);
  await assert.rejects(node.choose('debian+small'), isMistrusted(/but the OS is not trusted/));
  await node.modify('debian', { trusted: true });
  assert.equal((await node.choose('debian+small')).host?.path, join(node.os, 'create'));
  await node.change('create', 'evil');
  await assert.rejects(
    node.choose('debian+small'),
    isMistrusted(/changed after it was trusted on 2026-11-22 05:31:45 UTC/),
  );
  await node.modify('debian', { trusted: true });
  assert.notEqual((await node.choose('debian+small')).host, null);
});

test('another definition under the name of a trusted one is not trusted', async (t) => {
  const node = await createNode(t);
  await node.modify('debian', { trusted: true });
  await rm(node.os, { recursive: true });
  await cp(join(import.meta.dirname, '../../../fixtures/os/noop-api10'), node.os, {
    recursive: true,
  });
  await assert.rejects(node.choose('debian'), isMistrusted(/changed after it was trusted/));
});

test('trust that is revoked of an OS is revoked of its variants, however they were trusted', async (t) => {
  const node = await createNode(t);
  await node.modify('debian+small', { trusted: true, osParameters: {} });
  assert.notEqual((await node.choose('debian+small')).host, null);
  await assert.rejects(node.choose('debian+large'), isMistrusted(/is not trusted/));
  await node.modify('debian', { trusted: false });
  await assert.rejects(node.choose('debian+small'), isMistrusted(/is not trusted/));
  // Trust in the OS does not return with another content.
  await node.modify('debian+small', { hidden: true });
  await assert.rejects(node.choose('debian+small'), isMistrusted(/is not trusted/));
});

test('a variant of a trusted OS cannot be untrusted alone, which is said', async (t) => {
  const node = await createNode(t);
  await node.modify('debian', { trusted: true });
  await node.modify('debian+small', { trusted: false });
  assert.match(node.told.at(-1) ?? '', /gnt-os modify --trusted no debian$/);
});

test('a record that trusts a name and no content counts for nothing, and says so', async (t) => {
  const node = await createNode(t);
  await node.clusters.updateOs('debian', (settings) => ({ ...settings, trusted: true }));
  await assert.rejects(node.choose('debian+small'), isMistrusted(/only its name was trusted/));
});

test('a definition that lost its trust is refused, and not half run in the appliance', async (t) => {
  const node = await createNode(t);
  await mkdir(join(node.os, 'untrusted'));
  await node.change('untrusted/create', 'true');
  await node.modify('debian', { trusted: true });
  const chosen = await node.choose('debian+small');
  assert.deepEqual([chosen.appliance, chosen.host === null], ['untrusted/create', false]);
  await node.change('create', 'evil');
  await assert.rejects(node.choose('debian+small'), isMistrusted(/changed/));
  await node.modify('debian', { trusted: false });
  assert.deepEqual(await node.choose('debian+small'), {
    appliance: 'untrusted/create',
    host: null,
  });
});

test('half of a definition that nobody judged is not installed, and is when that is said', async (t) => {
  const node = await createNode(t);
  await mkdir(join(node.os, 'untrusted'));
  await node.change('untrusted/create', 'true');
  await assert.rejects(node.choose('debian+small'), isMistrusted(/but the OS is not trusted/));
  await node.modify('debian', { trusted: false });
  const half = { appliance: 'untrusted/create', host: null };
  assert.deepEqual(await node.choose('debian+small'), half);

  await node.modify('debian', { trusted: true });
  assert.notEqual((await node.choose('debian+small')).host, null);
  await node.clusters.update((cluster) => ({ ...cluster, hostScripts: false }));
  await assert.rejects(node.choose('debian+small'), (error) => {
    assert.ok(isAppError(error, 'OS_NOT_TRUSTED'));
    assert.match(error.hint ?? '', /--host-scripts yes.*gnt-os modify --trusted no debian/);
    return true;
  });
  await node.modify('debian', { trusted: false });
  assert.deepEqual(await node.choose('debian+small'), half);
});

test('helpers on the host are refused for the same reason', async (t) => {
  const node = await createNode(t);
  await node.modify('debian', { trusted: true });
  await node.change('export', 'evil');
  const { os, policy } = await selectOs('debian+small', node);
  assert.throws(
    () => requireHelper(os.definition, 'export', policy),
    isMistrusted(/^the export script of OS 'debian' would run on the host, but .*changed/),
  );
});

test('what is not there cannot be trusted before it is, and another node that has it is asked', async (t) => {
  const node = await createNode(t);
  await cp(node.os, join(node.dir, 'later'), { recursive: true });
  await rm(node.os, { recursive: true });
  await assert.rejects(
    node.modify('debian', { trusted: true }),
    (error) => isAppError(error, 'OS_NOT_FOUND') && /'debian' to trust/.test(error.message),
  );
  const digest = await digestDefinition(join(node.dir, 'later'));
  node.elsewhere = { node: 'two', digest };
  await node.modify('debian', { trusted: true });
  assert.match(node.told.at(-1) ?? '', /in its present content on node two: sha256:/);
  await cp(join(node.dir, 'later'), node.os, { recursive: true });
  assert.notEqual((await node.choose('debian+small')).host, null);
});

test('info tells the state of a definition, and what its variants have of their own', async (t) => {
  const node = await createNode(t);
  await node.modify('debian+small', { trusted: true });
  const before = await node.info();
  assert.deepEqual([before.trusted, before.trust.state], [false, 'untrusted']);
  assert.deepEqual(Object.keys(before.variantSettings), ['small']);
  assert.equal(before.variantSettings['small']?.trust.state, 'trusted');
  await node.change('create', 'evil');
  assert.equal((await node.info()).variantSettings['small']?.trust.state, 'changed');
});

test('what is forced into the appliance runs there whole, trusted or not, and nothing of it on the host', async (t) => {
  const node = await createNode(t);
  await node.modify('debian', { safeInstall: 'required' });
  assert.equal((await node.info()).safeInstall, 'required');
  assert.deepEqual(await node.choose('debian+small'), { appliance: 'create', host: null });
  await node.modify('debian', { trusted: true });
  assert.deepEqual(await node.choose('debian+small'), { appliance: 'create', host: null });
  const { os, policy } = await selectOs('debian+small', node);
  assert.deepEqual(requireHelper(os.definition, 'export', policy), { appliance: 'export' });
  assert.equal(os.definition.hostScripts.verify, undefined);
  await assert.rejects(node.choose('debian+small', false), (error) =>
    isAppError(error, 'VALIDATION'),
  );

  // The script for the appliance takes precedence there.
  await mkdir(join(node.os, 'untrusted'));
  await node.change('untrusted/create', 'true');
  assert.deepEqual(await node.choose('debian+small'), {
    appliance: 'untrusted/create',
    host: null,
  });
  await rm(join(node.os, 'untrusted'), { recursive: true });
  await node.modify('debian', { safeInstall: 'optional' });
  assert.ok((await node.choose('debian+small')).host);
});
