import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import { planNewInstance } from '../../../noded/instances/record/plan-record.ts';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { startInstanceHandler } from '../../../noded/operations/power.ts';
import { createHostCopies } from '../../../noded/provision/os/host-copies.ts';
import { createOsRegistry } from '../../../noded/provision/os/os-registry.ts';
import { createClusterRepository } from '../../../noded/records/cluster-repository.ts';
import { createInstanceRepository } from '../../../noded/records/instance-repository.ts';
import { createFakeGuests } from '../support/fake-guests.ts';
import { createLabBootViews } from '../support/lab-boot-views.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { createOpcode, parseOpcode } from '../support/opcodes.ts';
import { createTestChildren } from '../support/test-children.ts';

/** Creates a diskless instance of an OS with one parameter, `key`, on fake QEMU processes. */
async function createStartLab(t: TestContext, communication: boolean) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-start-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  await writeDefinition(join(dir, 'os/simple'));
  const clock = new ManualClock();
  const store = createSqliteStore({ path: join(dir, 'store.sqlite'), clock });
  t.after(() => store.close());
  const clusters = createClusterRepository(store, clock);
  await clusters.ensure();
  const instances = createInstanceRepository(store, clock, createRecordProblems(silentLogger));
  const planned = planNewInstance(
    createOpcode({ osType: 'simple', communication, diskTemplate: 'diskless', seedDisk: false }),
    { nodeName: 'node1', newUuid: randomUUID, newMac: () => 'aa:00:00:00:00:01' },
  );
  const { uuid, name } = await instances.create({ ...planned, installState: 'installed' });
  const disks = createInstanceDisks(join(dir, 'disks'));
  const { runner, metad, lifecycles } = createFakeGuests({ clusters, instances, disks, clock });
  // Starting such an instance uses no other dependencies.
  const handler = startInstanceHandler({
    ...{ instances, clusters, runner, lifecycles, osPaths: [] },
    bootViews: createLabBootViews(clusters),
    osRegistry: createOsRegistry({ searchPath: [join(dir, 'os')] }),
    hostCopies: createHostCopies(
      join(dir, 'copies'),
      createTestChildren(join(dir, 'children')).launch,
    ),
  } as unknown as OperationDependencies);
  const { signal } = new AbortController();
  const lines: string[] = [];
  const context = {
    ...{ jobId: 1, signal },
    report: { log: (line: string) => lines.push(line), waits: () => undefined },
  } as unknown as JobContext;
  return {
    start: async (osParametersSecret: Record<string, string>): Promise<void> => {
      const opcode = parseOpcode({ opcode: 'INSTANCE_STARTUP', name, osParametersSecret });
      assert.equal(opcode.opcode, 'INSTANCE_STARTUP');
      await (
        await handler.prepare(opcode, signal)
      )(context);
    },
    parameter: () => metad.views.get(uuid)?.osParameters['key'],
    record: () => instances.findByUuid(uuid),
    lines,
  };
}

async function writeDefinition(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
  await writeFile(join(path, 'ganeti_api_version'), '20\n');
  await writeFile(join(path, 'parameters.list'), 'key what it is for\n');
  for (const name of ['create', 'import', 'export', 'rename', 'verify'])
    await writeFile(join(path, name), '#!/bin/sh\n', { mode: 0o755 });
}

test('a running guest gets the secrets that a start is given', async (t) => {
  const lab = await createStartLab(t, true);
  await lab.start({});
  assert.equal(lab.parameter(), undefined);
  await lab.start({ key: 's3cret' });
  assert.deepEqual(lab.parameter(), { value: 's3cret', visibility: 'secret' });
  assert.deepEqual((await lab.record())?.secretNames, ['key']);
  assert.ok(
    lab.lines.some((line) => line.endsWith('secrets now: key')),
    lab.lines.join('\n'),
  );
});

test('a secret that the OS does not have is refused at a start, before it is named', async (t) => {
  const lab = await createStartLab(t, true);
  for (const isRunning of [false, true]) {
    await assert.rejects(lab.start({ other: 's3cret' }), { code: 'OS_PARAMETER' });
    assert.deepEqual((await lab.record())?.secretNames, [], String(isRunning));
    if (!isRunning) await lab.start({});
  }
});

test('a guest without a channel cannot be given secrets while it runs', async (t) => {
  const lab = await createStartLab(t, false);
  await lab.start({});
  await assert.rejects(lab.start({ key: 's3cret' }), { code: 'INSTANCE_STATE' });
  assert.deepEqual((await lab.record())?.secretNames, []);
  await lab.start({});
});
