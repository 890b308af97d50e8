import { Readable } from 'node:stream';
import { z } from 'zod';
import { activeDisk, listedOrphan } from '#shared/contract/api.ts';
import { hookBook } from '#shared/contract/hook-book.ts';
import { instanceInfo } from '#shared/contract/instance.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import type { Overview } from '../cluster/overview.ts';
import type { InstanceDisks } from '../disks/instance-disks.ts';
import { loadAppliance } from '../instances/choose-appliance.ts';
import { auditLogPath } from '../lifecycle/audit-log.ts';
import { hasSystemOnDisk } from '../instances/plan-boot.ts';
import type { HookChecker } from '../os/check-hooks.ts';
import type { OsRegistry } from '../os/os-registry.ts';
import { installLogPath, readInstallLog } from '../host/install-log.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import type { InstanceRepository } from '../records/instance-repository.ts';
import { flag, question, route, type AnyApiRoute } from './api-route.ts';

export interface InstanceRoutesDependencies {
  readonly overview: Pick<Overview, 'instances' | 'instance' | 'orphans'>;
  readonly instances: Pick<InstanceRepository, 'findByName' | 'findByUuid' | 'expandName'>;
  readonly disks: Pick<InstanceDisks, 'activate'>;
  readonly osRegistry: Pick<OsRegistry, 'find'>;
  readonly clusters: Pick<ClusterRepository, 'load' | 'loadOs'>;
  readonly hookChecker: HookChecker;
  readonly logDir: string;
}

export function instanceRoutes(dependencies: InstanceRoutesDependencies): readonly AnyApiRoute[] {
  const { overview, instances, disks, osRegistry, clusters, hookChecker, logDir } = dependencies;
  return [
    question('/v1/instances', 'All instances', instanceInfo.array(), async () => [
      ...(await overview.instances()),
    ]),
    question(
      '/v1/orphans',
      'Machines that run without a record of the cluster; INSTANCE_ADOPT and INSTANCE_REMOVE decide',
      listedOrphan.array(),
      async () => [...(await overview.orphans())],
    ),
    question(
      '/v1/instances/{name}',
      'An instance; private values are replaced, secrets are told by name',
      instanceInfo,
      async ({ name }) => overview.instance(await instances.expandName(name)),
    ),
    route({
      method: 'GET',
      path: '/v1/instances/{name}/log',
      summary: 'The log of the last installation',
      query: z.object({ follow: flag('1: goes on as the log grows') }),
      answers: { 200: { type: 'text/plain' } },
      handle: async ({ params, query, signal }) => {
        const { uuid, name, install } = await instances.findByName(
          await instances.expandName(params.name),
        );
        if (install === null) {
          throw new AppError(
            'NOT_FOUND',
            `instance '${name}' was never installed, so there is no log`,
          );
        }
        const isOngoing = async (): Promise<boolean> =>
          query.follow === '1' && (await instances.findByUuid(uuid))?.installState === 'installing';
        const log = openLog(readInstallLog(installLogPath(logDir, uuid), isOngoing, signal));
        return { status: 200, type: 'text/plain; charset=utf-8', body: Readable.from(log) };
      },
    }),
    route({
      method: 'GET',
      path: '/v1/instances/{name}/audit',
      summary: 'What its run lists did and printed',
      query: z.object({ follow: flag('1: goes on as it grows, while the instance is there') }),
      answers: { 200: { type: 'text/plain' } },
      handle: async ({ params, query, signal }) => {
        const { uuid } = await instances.findByName(await instances.expandName(params.name));
        const isOngoing = async (): Promise<boolean> =>
          query.follow === '1' && (await instances.findByUuid(uuid)) !== undefined;
        const log = openLog(readInstallLog(auditLogPath(logDir, uuid), isOngoing, signal));
        return { status: 200, type: 'text/plain; charset=utf-8', body: Readable.from(log) };
      },
    }),
    question(
      '/v1/instances/{name}/hooks',
      'The hooks of its next installation, in the order in which they are run',
      hookBook,
      async (params) => {
        const instance = await instances.findByName(await instances.expandName(params.name));
        const { osType, hooks } = instance;
        const os = osType === null ? null : await osRegistry.find(osType, { forceVariant: true });
        const { name: appliance } = await loadAppliance(instance, clusters);
        const { book } = await hookChecker.check({
          osPath: os?.definition.path ?? null,
          instance: hooks,
          ...{ hasImage: hasSystemOnDisk(instance), isReinstall: true, appliance },
        });
        return book ?? { stages: [], remarks: [] };
      },
    ),
    question(
      '/v1/instances/{name}/disks',
      'Where the host finds its disks',
      activeDisk.array(),
      async (params) => {
        const instance = await instances.findByName(await instances.expandName(params.name));
        if (instance.installState === 'installing') {
          throw new AppError(
            'INSTANCE_STATE',
            `instance '${instance.name}' is being installed, its disks are in use`,
            { hint: `wait for it: gnt-job watch ${instance.install?.jobId ?? 'ID'}` },
          );
        }
        return [...(await disks.activate(instance))];
      },
    ),
  ];
}

async function* openLog(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* chunks;
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    // Removed with its instance while it was followed.
  }
}
