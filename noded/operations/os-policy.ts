import type { OsSettings, OsTrust } from '#shared/contract/api.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import { osLayerNames } from '../instances/parameters/load-parameters.ts';
import { confineDefinition } from '../provision/os/confine-definition.ts';
import { digestDefinition } from '../provision/os/definition-content.ts';
import type { OsSelection } from '../provision/os/os-registry.ts';
import { judgeTrust } from '../provision/os/os-trust.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/** The administrator's settings for an OS and its variant. */
export interface OsPolicy {
  /** The OS by name, then with its variant. */
  readonly layers: readonly OsSettings[];
  /** The administrator's trust in the present content of the definition. */
  readonly trust: OsTrust;
  /** The cluster allows trusted scripts to run on its hosts. */
  readonly allowsHostScripts: boolean;
  /** The administrator explicitly revoked trust, rather than never deciding. */
  readonly isDistrusted: boolean;
}

/** @throws AppError OS_BLACKLISTED: the OS or its variant is blacklisted */
export function refuseBlacklisted(osType: string, { layers }: Pick<OsPolicy, 'layers'>): void {
  const blacklisted = layers.find((settings) => settings.blacklisted);
  if (blacklisted === undefined) return;
  throw new AppError('OS_BLACKLISTED', `Guest OS '${osType}' is not allowed for installation`, {
    hint: `Allow it: gnt-os modify --blacklisted no ${blacklisted.name}`,
  });
}

export interface SelectedOs {
  /** The usable part: an OS that must be installed in the appliance has no script for the host. */
  readonly os: OsSelection;
  readonly policy: OsPolicy;
}

/**
 * Returns an OS by name, with the administrator's settings.
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

/** @throws AppError OS_INVALID if the definition is marked as trusted but has no digest */
async function loadOsPolicy(
  osType: string,
  { definition }: OsSelection,
  clusters: ClusterRepository,
): Promise<OsPolicy> {
  const [{ hostScripts }, ...layers] = await Promise.all([
    clusters.load(),
    ...osLayerNames(osType).map((layer) => clusters.loadOs(layer)),
  ]);
  // Do not read an untrusted definition: its digest is not needed.
  const isMarked = layers.some((settings) => settings.trusted);
  const digest = isMarked ? await digestDefinition(definition.path) : null;
  const isDistrusted = !isMarked && layers.some((settings) => settings.isDistrusted === true);
  const trust = judgeTrust(layers, digest);
  return { layers, trust, allowsHostScripts: hostScripts, isDistrusted };
}
