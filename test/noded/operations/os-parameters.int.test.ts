import { createLabLifecycles } from '../support/lab-lifecycles.ts';
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { loadInstanceInfo } from '../../../noded/instances/instance-info.ts';
import type { InstanceRunner } from '../../../noded/instances/instance-runner.ts';
import { planNewInstance } from '../../../noded/instances/record/plan-record.ts';
import { createViews } from '../../../noded/instances/view/views.ts';
import { modifyInstanceHandler } from '../../../noded/operations/change-instance.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { digestDefinition } from '../../../noded/provision/os/definition-content.ts';
import { createTestChildren } from '../support/test-children.ts';
import { createHostCopies } from '../../../noded/provision/os/host-copies.ts';
import { createOsRegistry } from '../../../noded/provision/os/os-registry.ts';
import { createClusterRepository } from '../../../noded/records/cluster-repository.ts';
import { createInstanceRepository } from '../../../noded/records/instance-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { createOpcode, modifyOpcode } from '../support/opcodes.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createLabBootViews, noIdentities } from '../support/lab-boot-views.ts';

const PARAMETERS = ['hidden-below', 'shown-below', 'own', 'default'];

test('the guest, a script on the host and gnt-instance info agree on every parameter', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-parameters-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const told = join(dir, 'told');
  await writeDefinition(join(dir, 'os/debian'), told);
  const clock = new ManualClock();
  const store = createSqliteStore({ path: join(dir, 'store.sqlite'), clock });
  t.after(() => store.close());
  const clusters = createClusterRepository(store, clock);
  await clusters.ensure();
  const digest = await digestDefinition(join(dir, 'os/debian'));
  await clusters.updateOs('debian', (settings) => ({
    ...settings,
    trusted: true,
    trust: { digest, atMs: 0 },
    osParameters: { 'shown-below': 'os', default: 'os' },
    osParametersPrivate: { 'hidden-below': 'os', own: 'os' },
  }));
  await clusters.updateOs('debian+small', (settings) => ({
    ...settings,
    osParameters: { 'hidden-below': 'variant' },
    osParametersPrivate: { 'shown-below': 'variant' },
  }));
  const instances = createInstanceRepository(store, clock, createRecordProblems(silentLogger));
  const web1 = await instances.create(
    planNewInstance(
      createOpcode({
        osType: 'debian+small',
        communication: true,
        osParameters: { own: 'instance' },
      }),
      { nodeName: 'node1', newUuid: randomUUID, newMac: () => 'aa:00:00:00:00:01' },
    ),
  );

  const view = await createViews(
    instances,
    clusters,
    createLabLifecycles(),
    createLabBootViews(clusters),
    noIdentities,
  ).forRun(web1.uuid, 'gnt.com.0', 1);
  assert.deepEqual(view.osParameters, {
    'hidden-below': { value: 'variant', visibility: 'public' },
    'shown-below': { value: 'variant', visibility: 'private' },
    own: { value: 'instance', visibility: 'public' },
    default: { value: 'os', visibility: 'public' },
  });

  const runner = { running: () => undefined } as unknown as InstanceRunner; // nothing runs
  const info = await loadInstanceInfo(web1, {
    runner,
    clusters,
    guestReports: { report: () => null },
    bootViews: createLabBootViews(clusters),
    lifecycles: createLabLifecycles(),
  });
  assert.deepEqual(info.osParametersEffective, {
    'hidden-below': { value: 'variant', visibility: 'public', source: 'os debian+small' },
    'shown-below': { value: '<redacted>', visibility: 'private', source: 'os debian+small' },
    own: { value: 'instance', visibility: 'public', source: 'instance' },
    default: { value: 'os', visibility: 'public', source: 'os debian' },
  });

  const osRegistry = createOsRegistry({ searchPath: [join(dir, 'os')] });
  // The prerequisites of a modification use no other dependencies.
  const dependencies = {
    ...{ instances, clusters, osRegistry, runner, lifecycles: createLabLifecycles() },
    bootViews: createLabBootViews(clusters),
    hostCopies: createHostCopies(
      join(dir, 'copies'),
      createTestChildren(join(dir, 'children')).launch,
    ),
  } as unknown as OperationDependencies;
  await modifyInstanceHandler(dependencies).prepare(
    modifyOpcode({ name: web1.name, osParameters: { own: 'instance' } }),
    new AbortController().signal,
  );
  const inForce = Object.entries(view.osParameters).map(([name, { value }]) => [name, value]);
  assert.deepEqual(readVariables(await readFile(told, 'utf8')), Object.fromEntries(inForce));
});

async function writeDefinition(path: string, told: string): Promise<void> {
  await mkdir(path, { recursive: true });
  const script = async (name: string, text: string): Promise<void> =>
    writeFile(join(path, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  await writeFile(join(path, 'ganeti_api_version'), '20\n');
  await writeFile(join(path, 'variants.list'), 'small\n');
  await writeFile(join(path, 'parameters.list'), `${PARAMETERS.join(' x\n')} x\n`);
  for (const name of ['create', 'import', 'export', 'rename']) await script(name, 'exit 0');
  await script('verify', `env > '${told}'`);
}

/** Returns the OSP_* variables by parameter name. */
function readVariables(environment: string): Record<string, string | undefined> {
  const named = PARAMETERS.map((name) => {
    const variable = `OSP_${name.toUpperCase().replaceAll('-', '_')}=`;
    const line = environment.split('\n').find((each) => each.startsWith(variable));
    return [name, line?.slice(variable.length)] as const;
  });
  return Object.fromEntries(named);
}
