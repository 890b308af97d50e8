import { osInfo, type OsInfo, type OsSettings, type OsVariantInfo } from '#shared/contract/api.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { describeParameters, osLayer, resolveParameters } from '../instances/os-parameters.ts';
import { digestDefinition } from '../os/definition-content.ts';
import { judgeTrust } from '../os/os-trust.ts';
import type { OsDiagnosis, OsRegistry } from '../os/os-registry.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import { question, type AnyApiRoute } from './api-route.ts';

export interface OsRoutesDependencies {
  readonly osRegistry: OsRegistry;
  readonly osSearchPath: readonly string[];
  readonly clusters: Pick<ClusterRepository, 'loadOs' | 'loadVariants'>;
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
  const variants = await clusters.loadVariants(diagnosis.name);
  const { definition } = diagnosis;
  const digest = await tryDigest(diagnosis);
  const trust = judgeTrust([settings], digest);
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
    trusted: trust.state === 'trusted',
    trust,
    ...describeSettings(settings),
    variantSettings: Object.fromEntries(
      [...variants].map(([variant, own]) => [
        variant,
        { trust: judgeTrust([settings, own], digest), ...describeSettings(own) },
      ]),
    ),
  };
}

/** Null for one that cannot be trusted: the operation that would need it says why. */
async function tryDigest({ path, definition }: OsDiagnosis): Promise<string | null> {
  if (definition === null) return null;
  try {
    return await digestDefinition(path);
  } catch (error) {
    if (isAppError(error, 'OS_INVALID')) return null;
    throw error;
  }
}

function describeSettings(
  settings: OsSettings,
): Pick<OsVariantInfo, 'hidden' | 'blacklisted' | 'defaults'> {
  return {
    hidden: settings.hidden,
    blacklisted: settings.blacklisted,
    defaults: describeParameters(resolveParameters([osLayer(settings)])),
  };
}
