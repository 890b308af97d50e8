import { existsSync } from 'node:fs';
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { z } from 'zod';
import type { instanceEndpoints } from '#shared/contract/endpoints.ts';
import {
  machineChanges,
  type InstanceInfo,
  type InstanceSummary,
  type InstanceSummaryField,
} from '#shared/contract/instance.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import type { Overview } from '../../cluster/membership/overview.ts';
import type { InstanceDisks } from '../../storage/instance-disks.ts';
import { loadAppliance } from '../../instances/record/choose-appliance.ts';
import type { MachineKeeper } from '../../instances/machines/machine-keeper.ts';
import { auditLogPath } from '../../instances/run-lists/audit-log.ts';
import { hasSystemOnDisk } from '../../instances/machines/plan-boot.ts';
import { watchMachines } from '../../instances/machines/watch-machines.ts';
import type { HookChecker } from '../../provision/os/check-hooks.ts';
import type { OsRegistry } from '../../provision/os/os-registry.ts';
import { measureRoom } from '../../host/measure-room.ts';
import { installLogPath, readInstallLog } from '../../host/install-log.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import { type Handlers, Reply } from './handlers.ts';
import { encodeArray, streamBegun } from './stream-slices.ts';

export interface InstanceRoutesDependencies {
  readonly overview: Pick<Overview, 'instanceSlices' | 'summaries' | 'instance' | 'orphans'>;
  readonly keeper: Pick<MachineKeeper, 'list'>;
  readonly instances: Pick<InstanceRepository, 'findByName' | 'findByUuid' | 'expandName'>;
  readonly disks: Pick<InstanceDisks, 'activate' | 'totalBytes' | 'freeBytes' | 'volumeRoom'>;
  readonly osRegistry: Pick<OsRegistry, 'find'>;
  readonly clusters: Pick<ClusterRepository, 'load' | 'loadOs' | 'loadProfile'>;
  readonly hookChecker: HookChecker;
  readonly logDir: string;
}

export function instanceRoutes(
  dependencies: InstanceRoutesDependencies,
): Handlers<typeof instanceEndpoints> {
  const { overview, keeper, instances, disks, osRegistry, clusters, hookChecker, logDir } =
    dependencies;
  return {
    'GET /v1/instances': ({ query }) =>
      answerInstances(overview.instanceSlices(), query.lines === '1'),
    'GET /v1/instance-summaries': async ({ query }) =>
      Readable.from(encodeSummaries(await overview.summaries(), query.fields)),
    'GET /v1/own-instances': () => streamBegun(overview.instanceSlices(), encodeLines),
    'GET /v1/machines/events': ({ signal }) =>
      Readable.from(
        encodeEach(
          watchMachines(keeper, () => measureRoom(disks), signal),
          machineChanges,
        ),
      ),
    'GET /v1/orphans': async () => [...(await overview.orphans())],
    'GET /v1/instances/{name}': async ({ params }) =>
      overview.instance(await instances.expandName(params.name)),
    'GET /v1/instances/{name}/log': async ({ params, query, signal }) => {
      const { uuid, name, install, primaryNode } = await instances.findByName(
        await instances.expandName(params.name),
      );
      if (install === null) {
        throw new AppError('NOT_FOUND', `instance '${name}' was never installed, so it has no log`);
      }
      const path = installLogPath(logDir, uuid);
      if (install.logFile !== null && !existsSync(path)) {
        throw new AppError(
          'NOT_FOUND',
          `node ${primaryNode} has no log of the last installation of '${name}'`,
          {
            details: { name },
            hint: `If the instance has moved since, the log stayed on the node that wrote it, as ${install.logFile}. Show the node: gnt-job info ${install.jobId}`,
          },
        );
      }
      const isOngoing = async (): Promise<boolean> =>
        query.follow === '1' && (await instances.findByUuid(uuid))?.installState === 'installing';
      return Readable.from(openLog(readInstallLog(path, isOngoing, signal)));
    },
    'GET /v1/instances/{name}/audit': async ({ params, query, signal }) => {
      const { uuid, name, lifecycle, primaryNode } = await instances.findByName(
        await instances.expandName(params.name),
      );
      const path = auditLogPath(logDir, uuid);
      // With `follow` the log may be created later.
      if (lifecycle !== null && query.follow !== '1' && !existsSync(path)) {
        throw new AppError('NOT_FOUND', `node ${primaryNode} has no audit log of '${name}'`, {
          details: { name },
          hint: `If the instance has moved since its last run, the log stayed on the former node, as ${path}. Find the move with gnt-job list (INSTANCE_MOVE), then show its node: gnt-job info ID`,
        });
      }
      const isOngoing = async (): Promise<boolean> =>
        query.follow === '1' && (await instances.findByUuid(uuid)) !== undefined;
      return Readable.from(openLog(readInstallLog(path, isOngoing, signal)));
    },
    'GET /v1/instances/{name}/hooks': async ({ params }) => {
      const instance = await instances.findByName(await instances.expandName(params.name));
      const { osType, hooks } = instance;
      const os = osType === null ? null : await osRegistry.find(osType, { forceVariant: true });
      const { name: appliance } = await loadAppliance(instance, clusters);
      const { book } = await hookChecker.check({
        osPath: os?.definition.path ?? null,
        instance: hooks,
        hasImage: hasSystemOnDisk(instance),
        isReinstall: true,
        appliance,
      });
      return book ?? { stages: [], remarks: [] };
    },
    'GET /v1/instances/{name}/disks': async ({ params }) => {
      const instance = await instances.findByName(await instances.expandName(params.name));
      if (instance.installState === 'installing') {
        throw new AppError(
          'INSTANCE_STATE',
          `instance '${instance.name}' is being installed, so its disks are in use`,
          { hint: `Wait for it: gnt-job watch ${instance.install?.jobId ?? 'ID'}` },
        );
      }
      return [...(await disks.activate(instance))];
    },
  };
}

/** Streams instances as one JSON array, or one per line. */
export async function answerInstances(
  slices: AsyncIterable<readonly InstanceInfo[]>,
  asLines: boolean,
): Promise<Reply> {
  if (!asLines) return new Reply(200, await streamBegun(slices, encodeArray));
  const type = 'application/x-ndjson';
  return new Reply(200, await streamBegun(slices, encodeLines), { type });
}

/**
 * Instances written at a time: about 0.5 ms of work. Other requests wait for one such slice at each
 * of their own store accesses.
 */
const AT_ONCE = 64;

/**
 * Encodes summaries without the schema. Records and reports of nodes were checked on arrival, and
 * summaries have only the schema's fields.
 */
export async function* encodeSummaries(
  all: Iterable<InstanceSummary>,
  fields: readonly InstanceSummaryField[] | undefined,
): AsyncGenerator<string> {
  let lines: string[] = [];
  for (const each of all) {
    lines.push(`${JSON.stringify(fields ? pick(each, fields) : each)}\n`);
    if (lines.length < AT_ONCE) continue;
    yield lines.join('');
    lines = [];
    await turn();
  }
  if (lines.length > 0) yield lines.join('');
}

function pick(summary: InstanceSummary, fields: readonly InstanceSummaryField[]): object {
  const picked: Record<string, unknown> = {};
  for (const field of fields) picked[field] = summary[field];
  return picked;
}

async function* encodeEach<T>(
  each: AsyncIterable<T>,
  schema: z.ZodType<T>,
): AsyncGenerator<string> {
  for await (const one of each) yield `${JSON.stringify(schema.parse(one))}\n`;
}

async function* encodeLines(
  slices: AsyncIterable<readonly InstanceInfo[]>,
): AsyncGenerator<string> {
  for await (const slice of slices) yield slice.map((each) => `${JSON.stringify(each)}\n`).join('');
}

async function* openLog(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* chunks;
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    // The log was removed with its instance while it was followed.
  }
}
