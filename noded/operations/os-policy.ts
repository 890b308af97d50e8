import type { OsSettings, OsTrust } from '#shared/contract/api.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import { osLayerNames } from '../instances/parameters/load-parameters.ts';
import { confineDefinition } from '../provision/os/confine-definition.ts';
import { digestDefinition } from '../provision/os/definition-content.ts';
import type { OsSelection } from '../provision/os/os-registry.ts';
import { judgeTrust } from '../provision/os/os-trust.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/** What the administrator said of an OS and of its variant. */
export interface OsPolicy {
  /** The OS by name, then with its variant. */
  readonly layers: readonly OsSettings[];
  /** The administrator's trust in the definition as it is now. */
  readonly trust: OsTrust;
  /** The cluster lets trusted scripts run on its hosts. */
  readonly allowsHostScripts: boolean;
  /** The administrator said that it is not trusted, rather than nothing. */
  readonly isDistrusted: boolean;
}

/** @throws AppError OS_BLACKLISTED: by its own name, or by that of its variant */
export function refuseBlacklisted(osType: string, { layers }: Pick<OsPolicy, 'layers'>): void {
  const blacklisted = layers.find((settings) => settings.blacklisted);
  if (blacklisted === undefined) return;
  throw new AppError('OS_BLACKLISTED', `Guest OS '${osType}' is not allowed for installation`, {
    hint: `Allow it: gnt-os modify --blacklisted no ${blacklisted.name}`,
  });
}

export interface SelectedOs {
  /** What of it may be used: one that is forced into the appliance has no script for the host. */
  readonly os: OsSelection;
  readonly policy: OsPolicy;
}

/**
 * An OS by name, with what the administrator said of it.
 * @throws AppError OS_NOT_FOUND, OS_INVALID, OS_VARIANT
 */
export async function selectOs(
  osType: string,
  { osRegistry, clusters }: Pick<OperationDependencies, 'osRegistry' | 'clusters'>,
  options: { readonly forceVariant: boolean } = { forceVariant: false },
): Promise<SelectedOs> {
  const os = await osRegistry.find(osType, options);
  const policy = await loadOsPolicy(osType, os, clusters);
  const isConfined = policy.layers.some(({ safeInstall }) => safeInstall === 'required');
  const { definition } = os;
  return { os: isConfined ? { ...os, definition: confineDefinition(definition) } : os, policy };
}

/** @throws AppError OS_INVALID when the definition is marked as trusted, and has no digest */
async function loadOsPolicy(
  osType: string,
  { definition }: OsSelection,
  clusters: ClusterRepository,
): Promise<OsPolicy> {
  const [{ hostScripts }, ...layers] = await Promise.all([
    clusters.load(),
    ...osLayerNames(osType).map((layer) => clusters.loadOs(layer)),
  ]);
  // One that nobody trusts need not be read.
  const isMarked = layers.some((settings) => settings.trusted);
  const digest = isMarked ? await digestDefinition(definition.path) : null;
  const isDistrusted = !isMarked && layers.some((settings) => settings.isDistrusted === true);
  const trust = judgeTrust(layers, digest);
  return { layers, trust, allowsHostScripts: hostScripts, isDistrusted };
}
