import { osInfo, type OsInfo } from '#shared/contract/api.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { describeParameters, osLayer, resolveParameters } from '../instances/os-parameters.ts';
import type { OsDiagnosis, OsRegistry } from '../os/os-registry.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import { question, type AnyApiRoute } from './api-route.ts';

export interface OsRoutesDependencies {
  readonly osRegistry: OsRegistry;
  readonly osSearchPath: readonly string[];
  readonly clusters: Pick<ClusterRepository, 'loadOs'>;
}

export function osRoutes(dependencies: OsRoutesDependencies): readonly AnyApiRoute[] {
  const { osRegistry, osSearchPath, clusters } = dependencies;
  return [
    question('/v1/os', 'OS definitions that are found', osInfo.array(), async () => {
      const found = await osRegistry.list();
      return Promise.all(found.map((diagnosis) => describeOs(diagnosis, clusters)));
    }),
    question('/v1/os/{name}', 'An OS definition', osInfo, async ({ name }) => {
      const diagnosis = await osRegistry.diagnose(name);
      if (diagnosis !== undefined) return describeOs(diagnosis, clusters);
      throw new AppError('OS_NOT_FOUND', `Directory for OS ${name} not found in search path`, {
        hint: `put it below ${osSearchPath.join(' or ')}`,
      });
    }),
  ];
}

async function describeOs(
  diagnosis: OsDiagnosis,
  clusters: OsRoutesDependencies['clusters'],
): Promise<OsInfo> {
  const settings = await clusters.loadOs(diagnosis.name);
  const { definition } = diagnosis;
  return {
    name: diagnosis.name,
    path: diagnosis.path,
    valid: definition !== null,
    problem: diagnosis.problem,
    apiVersions: [...(definition?.apiVersions ?? [])],
    variants: [...(definition?.variants ?? [])],
    parameters: [...(definition?.parameters ?? [])],
    hostScripts: Object.keys(definition?.hostScripts ?? {}),
    applianceScripts: Object.keys(definition?.applianceScripts ?? {}),
    trusted: settings.trusted,
    hidden: settings.hidden,
    blacklisted: settings.blacklisted,
    defaults: describeParameters(resolveParameters([osLayer(settings)])),
  };
}
