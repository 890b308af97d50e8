import type { osEndpoints } from '#shared/contract/endpoints.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Overview } from '../../cluster/membership/overview.ts';
import { describeAllOs, describeOs } from '../../provision/os/describe-os.ts';
import type { OsRegistry } from '../../provision/os/os-registry.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { Handlers } from './handlers.ts';

export interface OsRoutesDependencies {
  readonly osRegistry: OsRegistry;
  readonly osSearchPath: readonly string[];
  readonly clusters: Pick<ClusterRepository, 'loadOs' | 'loadVariants'>;
  readonly overview: Pick<Overview, 'operatingSystems'>;
}

export function osRoutes(dependencies: OsRoutesDependencies): Handlers<typeof osEndpoints> {
  const { osRegistry, osSearchPath, clusters, overview } = dependencies;
  return {
    'GET /v1/os': () => describeAllOs(osRegistry, clusters),
    'GET /v1/os/{name}': async ({ params: { name } }) => {
      const diagnosis = await osRegistry.diagnose(name);
      if (diagnosis !== undefined) return describeOs(diagnosis, clusters);
      throw new AppError('OS_NOT_FOUND', `Directory for OS ${name} not found in search path`, {
        hint: `Put it below one of ${osSearchPath.join(', ')}.`,
      });
    },
    'GET /v1/os-of-nodes': async () => [...(await overview.operatingSystems())],
  };
}
