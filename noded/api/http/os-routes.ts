import { nodeOs, osInfo } from '#shared/contract/api.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Overview } from '../../cluster/membership/overview.ts';
import { describeAllOs, describeOs } from '../../provision/os/describe-os.ts';
import type { OsRegistry } from '../../provision/os/os-registry.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import { question, type AnyApiRoute } from './api-route.ts';

export interface OsRoutesDependencies {
  readonly osRegistry: OsRegistry;
  readonly osSearchPath: readonly string[];
  readonly clusters: Pick<ClusterRepository, 'loadOs' | 'loadVariants'>;
  readonly overview: Pick<Overview, 'operatingSystems'>;
}

export function osRoutes(dependencies: OsRoutesDependencies): readonly AnyApiRoute[] {
  const { osRegistry, osSearchPath, clusters, overview } = dependencies;
  return [
    question('/v1/os', 'Lists the OS definitions of this node', osInfo.array(), () =>
      describeAllOs(osRegistry, clusters),
    ),
    question('/v1/os/{name}', 'Describes one OS definition', osInfo, async ({ name }) => {
      const diagnosis = await osRegistry.diagnose(name);
      if (diagnosis !== undefined) return describeOs(diagnosis, clusters);
      throw new AppError('OS_NOT_FOUND', `Directory for OS ${name} not found in search path`, {
        hint: `Put it below ${osSearchPath.join(' or ')}.`,
      });
    }),
    question(
      '/v1/os-of-nodes',
      'Lists the OS definitions of all nodes',
      nodeOs.array(),
      async () => [...(await overview.operatingSystems())],
    ),
  ];
}
