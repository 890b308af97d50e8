import { z } from 'zod';
import type { BootEnv } from '#shared/contract/boot-env.ts';
import { bootEnvName } from '#shared/contract/boot-env.ts';
import {
  bootArchiveInfo,
  type BootEnvInfo,
  bootEnvInfo,
  bootParamInfo,
  type BootPlanInfo,
  bootPlanInfo,
  bootTemplateInfo,
  installsSystem,
} from '#shared/contract/boot-objects.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { BootArchives } from '../../netboot/archives.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { IndexedInstance, InstanceIndex } from '../../records/instance-index.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import { question, route, type AnyApiRoute } from './api-route.ts';

export interface BootContentRoutesDependencies {
  readonly clusters: Pick<ClusterRepository, 'listBootEnvs' | 'listTemplates' | 'listParams'>;
  readonly instances: Pick<InstanceRepository, 'findByName' | 'expandName'>;
  readonly index: Pick<InstanceIndex, 'list'>;
  readonly archives: Pick<BootArchives, 'list'>;
  /** What an instance would be given. @throws AppError BOOTENV_* */
  readonly planBoot: (instance: InstanceRecord, bootEnv: string | null) => Promise<BootPlanInfo>;
}

export function bootContentRoutes({
  clusters,
  instances,
  index,
  archives,
  planBoot,
}: BootContentRoutesDependencies): readonly AnyApiRoute[] {
  return [
    question('/v1/bootenvs', 'Lists the boot environments', bootEnvInfo.array(), async () => {
      const all = await index.list();
      const bootEnvs = await clusters.listBootEnvs();
      return bootEnvs.map((bootEnv) => describeBootEnv(bootEnv, all));
    }),
    question(
      '/v1/boot-templates',
      'Lists the templates of boot environments',
      bootTemplateInfo.array(),
      async () =>
        (await clusters.listTemplates()).map(({ ID, Contents }) => ({
          id: ID,
          contents: Contents,
        })),
    ),
    question(
      '/v1/boot-params',
      'Lists the params of boot environments',
      bootParamInfo.array(),
      async () =>
        (await clusters.listParams()).map(({ Name, Schema }) => ({ name: Name, schema: Schema })),
    ),
    question(
      '/v1/boot-archives',
      'Lists the extracted archives of boot environments on this node',
      bootArchiveInfo.array(),
      async () => {
        const [opened, bootEnvs] = await Promise.all([archives.list(), clusters.listBootEnvs()]);
        return opened.map((archive) => ({
          ...archive,
          bootEnvs: bootEnvs
            .filter(({ OS }) => OS.SupportedArchitectures.amd64.IsoFile === archive.isoFile)
            .map(({ Name }) => Name),
        }));
      },
    ),
    route({
      method: 'GET',
      path: '/v1/instances/{name}/boot-plan',
      summary:
        'Renders every file of a boot environment for an instance, without private and secret values',
      query: z.object({
        bootenv: bootEnvName.describe("default: the instance's own boot environment").optional(),
      }),
      answers: { 200: bootPlanInfo },
      handle: async ({ params, query }) => {
        const instance = await instances.findByName(await instances.expandName(params.name));
        return { status: 200, body: await planBoot(instance, query.bootenv ?? null) };
      },
    }),
  ];
}

/** @param instances those that it is told of */
export function describeBootEnv(
  bootEnv: BootEnv,
  instances: readonly Pick<IndexedInstance, 'name' | 'bootEnv'>[],
): BootEnvInfo {
  const { Name, Description, OS, Templates, RequiredParams } = bootEnv;
  const { amd64 } = OS.SupportedArchitectures;
  return {
    name: Name,
    description: Description,
    osName: OS.Name,
    installs: installsSystem(Name),
    isoFile: amd64.IsoFile,
    isoUrl: amd64.IsoUrl,
    templates: Templates.flatMap(({ ID }) => (ID === '' ? [] : [ID])),
    requiredParams: [...RequiredParams],
    instances: instances.filter((one) => one.bootEnv === Name).map(({ name }) => name),
    document: bootEnv,
  };
}
