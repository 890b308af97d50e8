import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import { createMovingDisks } from '../../../noded/storage/moving-disks.ts';
import { createOrphans } from '../../../noded/instances/machines/orphans.ts';
import { planNewInstance } from '../../../noded/instances/record/plan-record.ts';
import { createJobRepository } from '../../../noded/jobs/job-repository.ts';
import { createClusterRepository } from '../../../noded/records/cluster-repository.ts';
import { startInstanceIndex } from '../../../noded/records/instance-index.ts';
import { createInstanceRepository } from '../../../noded/records/instance-repository.ts';
import { beginInstall, beginReinstall } from '../../../noded/records/install-states.ts';
import { ManualClock } from './manual-clock.ts';
import { createOpcode } from './opcodes.ts';
import { createTestOutcomes } from './test-outcomes.ts';
import { createFakeGuests } from './fake-guests.ts';

/**
 * Creates a node whose daemon was killed. The test chooses the remains in the store, in metad and
 * in the process table.
 */
export async function createKilledNode(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-recover-'));
  const clock = new ManualClock(50_000);
  const store = createSqliteStore({ path: join(dir, 'store.sqlite'), clock });
  t.after(() => store.close());
  const clusters = createClusterRepository(store, clock);
  await clusters.ensure();
  const instances = createInstanceRepository(store, clock, createRecordProblems(silentLogger));
  const problems = createRecordProblems(silentLogger);
  const readWhole = t.mock.method(store, 'scan');
  const index = startInstanceIndex({ store, problems, logger: silentLogger });
  t.after(() => index[Symbol.asyncDispose]());
  const jobs = createJobRepository(store, problems);
  const logger = silentLogger;
  const disks = createInstanceDisks(dir);
  const guests = createFakeGuests({ clusters, instances, disks, clock });
  const { keeper, views } = guests;
  t.after(() => rm(dir, { recursive: true, force: true }));
  const owns = (node: string | undefined): boolean =>
    node === undefined || node === 'node1.example.com';
  return {
    readWhole,
    store,
    ...guests,
    dir,
    orphans: createOrphans({ instances, keeper, views, owns, logger, clock }),
    instances,
    index,
    disks,
    ...{
      snapshots: disks.snapshots,
      moving: createMovingDisks(dir, disks),
      nodeName: 'node1.example.com',
    },
    jobs,
    outcomes: createTestOutcomes(join(dir, 'outcomes'), jobs, instances),
    owns,
    logger,
    clock,
    create: (name: string) =>
      instances.create(
        planNewInstance(createOpcode({ name, communication: true }), {
          nodeName: 'node1.example.com',
          newUuid: randomUUID,
          newMac: () => 'aa:00:00:00:00:01',
        }),
      ),
  };
}

export type KilledNode = Awaited<ReturnType<typeof createKilledNode>>;

/** An instance that was up, with its disk, and the new disk of a reinstallation. */
export async function createReinstalled(node: KilledNode) {
  const web1 = await node.create('web1.example.com');
  const installed = { ...beginInstall(1, 1).install, state: 'success' } as const;
  const up = await node.instances.update(web1.uuid, (instance) => ({
    ...instance,
    ...{ installState: 'installed', adminState: 'up', install: installed },
  }));
  await node.disks.createEmpty(up);
  await writeFile(node.disks.pathOf(up, 0), 'old');
  await node.instances.update(web1.uuid, (instance) => ({
    ...beginReinstall(instance, 2, 2),
    adminState: 'down',
  }));
  const next = { ...up, instanceId: randomUUID() };
  using files = node.disks.openForInstall(next, { kind: 'beside', neededBytes: 1 });
  await files.create();
  await writeFile(files.pathOf(0), 'new');
  return { up, next, read: () => readFile(node.disks.pathOf(up, 0), 'utf8') };
}
