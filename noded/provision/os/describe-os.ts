import type { OsInfo, OsSettings, OsVariantInfo } from '#shared/contract/api.ts';
import {
  describeParameters,
  osLayer,
  resolveParameters,
} from '../../instances/parameters/os-parameters.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import { findDigest } from './definition-content.ts';
import type { OsDiagnosis, OsRegistry } from './os-registry.ts';
import { judgeTrust } from './os-trust.ts';

type OsSettingsSource = Pick<ClusterRepository, 'loadOs' | 'loadVariants'>;

/** Describes all OS definitions of this node, by name. */
export async function describeAllOs(
  osRegistry: Pick<OsRegistry, 'list'>,
  clusters: OsSettingsSource,
): Promise<OsInfo[]> {
  const found = await osRegistry.list();
  return Promise.all(found.map((diagnosis) => describeOs(diagnosis, clusters)));
}

/** Describes an OS definition of this node with its settings and trust. */
export async function describeOs(
  diagnosis: OsDiagnosis,
  clusters: OsSettingsSource,
): Promise<OsInfo> {
  const settings = await clusters.loadOs(diagnosis.name);
  const variants = await clusters.loadVariants(diagnosis.name);
  const { definition } = diagnosis;
  // The operation that needs the digest reports why there is none.
  const digest = definition === null ? null : await findDigest(diagnosis.path);
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

function describeSettings(
  settings: OsSettings,
): Pick<OsVariantInfo, 'hidden' | 'blacklisted' | 'safeInstall' | 'appliance' | 'defaults'> {
  return {
    hidden: settings.hidden,
    blacklisted: settings.blacklisted,
    safeInstall: settings.safeInstall,
    ...(settings.appliance !== undefined && { appliance: settings.appliance }),
    defaults: describeParameters(resolveParameters([osLayer(settings)])),
  };
}
