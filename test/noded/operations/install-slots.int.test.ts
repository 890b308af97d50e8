import { createLabLifecycles } from '../support/lab-lifecycles.ts';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { NO_FLAGS } from '#shared/contract/node-flags.ts';
import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import { ImageCache } from '../../../noded/content/images/image-cache.ts';
import type { InstallerDependencies } from '../../../noded/provision/install/install-request.ts';
import { InstallRoom } from '../../../noded/provision/install/install-room.ts';
import { createOpenInstallPackage } from '../../../noded/provision/install/open-install-package.ts';
import { Installer } from '../../../noded/provision/install/installer.ts';
import type { JobReporter } from '../../../noded/jobs/job-handler.ts';
import { createInstanceHandler } from '../../../noded/operations/create-instance.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { createClusterRepository } from '../../../noded/records/cluster-repository.ts';
import { createInstanceRepository } from '../../../noded/records/instance-repository.ts';
import { createJobRepository } from '../../../noded/jobs/job-repository.ts';
import { createTestOutcomes } from '../support/test-outcomes.ts';
import { createOpcode } from '../support/opcodes.ts';
import { listenOnLoopback } from '../../lab/listen-on-loopback.ts';

type CreateInput = NonNullable<Parameters<typeof createOpcode>[0]>;

const report: JobReporter = {
  log: () => undefined,
  stageStarted: () => undefined,
  stageFinished: () => undefined,
  progress: () => undefined,
  waits: () => undefined,
  output: () => undefined,
  scriptOutput: () => undefined,
};

/** Sources of an installation, by the slow part. */
const SLOW = {
  images: (url) => ({ osImage: `${url}.raw` }),
  'packages, which are to be checked,': (url, localImage) => ({
    osImage: localImage,
    personalizationPackage: `${url}.tar.gz`,
    personalizationChecksum: `sha256:${'0'.repeat(64)}`,
  }),
} satisfies Record<string, (url: string, localImage: string) => CreateInput>;

for (const [what, made] of Object.entries(SLOW))
  test(`installations whose ${what} come at a byte a second hold no place of those that could run`, () =>
    compete(made));

async function compete(made: (url: string, localImage: string) => CreateInput): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-slots-'));
  await mkdir(join(directory, 'disks'));
  const server = createServer((_, response) => {
    response.write(Buffer.from([0x1f, 0x8b]));
    const timer = setInterval(() => response.write('x'), 1000);
    response.on('close', () => clearInterval(timer));
  });
  const port = await listenOnLoopback(server);
  const clock = systemClock;
  const store = createSqliteStore({ path: join(directory, 'store.sqlite'), clock });
  const clusters = createClusterRepository(store, clock);
  await clusters.ensure();
  const instances = createInstanceRepository(store, clock, createRecordProblems(silentLogger));
  const images = new ImageCache({
    dir: join(directory, 'images'),
    maxBytes: 1e9,
    limits: async () => downloadLimitsOf({}),
    logger: silentLogger,
    clock,
  });
  const disks = createInstanceDisks(join(directory, 'disks'));
  // The first step after an installation has its image and its slot.
  const reached = (): Promise<never> =>
    Promise.reject(new AppError('APPLIANCE_MISSING', 'it may boot'));
  const installer = new Installer({
    outcomes: createTestOutcomes(
      join(directory, 'outcomes'),
      createJobRepository(store, createRecordProblems(silentLogger)),
      instances,
    ),
    ...{ repository: instances, disks, images, logger: silentLogger, clock, logDir: directory },
    applianceFiles: { memoryMiB: async () => 64, hooksOf: async () => [], ensure: reached },
    room: new InstallRoom({
      ...{ maxInstalls: 1, reserveMiB: 0 },
      availableMiB: () => 1e6,
      takenMiB: () => 0,
    }),
    signatures: { checkOf: async () => null },
    openPackage: createOpenInstallPackage(clusters, join(directory, 'netrc')),
    active: new Map(),
    onStageEnded: () => undefined,
  } as unknown as InstallerDependencies);
  const handler = createInstanceHandler({
    ...{ nodeName: 'node1', owns: () => true, clusters, instances, disks, images, installer },
    runner: { checkInstallable: async () => undefined },
    bootViews: { check: async () => undefined },
    hookChecker: { check: async () => ({ documents: [], book: null }) },
    ...{ logger: silentLogger, clock },
    lifecycles: createLabLifecycles(),
    nodes: { flagsOf: () => Promise.resolve(NO_FLAGS) },
  } as unknown as OperationDependencies);
  const ends = new AbortController();
  let jobId = 0;
  const create = async (input: CreateInput): Promise<unknown> => {
    jobId += 1;
    const opcode = createOpcode({
      name: `web${jobId}.example.com`,
      ...input,
      disks: [{ sizeBytes: 1024 ** 2 }],
    });
    const execute = await handler.prepare(opcode, ends.signal);
    return execute({ jobId, signal: ends.signal, report });
  };
  try {
    const path = join(directory, 'local.raw');
    await writeFile(path, 'an image');
    const slow = [1, 2].map((n) => create(made(`http://127.0.0.1:${port}/${n}`, path)));
    const reason = new AppError('JOB_CANCELED', 'enough');
    const outcomes = Promise.allSettled(slow);
    await Promise.race([once(server, 'request'), ...slow]);
    await assert.rejects(create({ osImage: path }), { message: 'it may boot' });
    ends.abort(reason);
    for (const outcome of await outcomes) assert.equal(outcome.status, 'rejected');
  } finally {
    server.closeAllConnections();
    server.close();
    await images.close();
    await store.close();
    await rm(directory, { recursive: true });
  }
}
