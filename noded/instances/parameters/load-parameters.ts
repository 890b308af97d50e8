import type { InstanceRecord } from '#shared/contract/instance.ts';
import { splitOsName } from '#shared/contract/os-name.ts';
import { GLOBAL_PROFILE } from '#shared/contract/profile.ts';
import type { Secret } from '#shared/secret/secret.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import { noSecrets } from './job-secrets.ts';
import {
  instanceLayer,
  type OsParameters,
  osLayer,
  type ParameterLayer,
  profileLayer,
  resolveParameters,
} from './os-parameters.ts';

/** The fields of an instance that decide its OS parameters. */
export type ParameterOwner = Pick<
  InstanceRecord,
  'osType' | 'osParameters' | 'osParametersPrivate' | 'secretNames' | 'profiles'
>;

export type ParameterSources = Pick<ClusterRepository, 'loadOs' | 'loadProfile'>;

/**
 * Returns the OS parameters in force for an instance, from all layers in this order: the global
 * profile, the OS, its variant, the profiles, the instance, the secrets of the running job. A
 * missing profile adds nothing.
 */
export async function loadParameters(
  instance: ParameterOwner,
  clusters: ParameterSources,
  secrets: ReadonlyMap<string, Secret> = noSecrets.osParameters,
): Promise<OsParameters> {
  return resolveParameters(await loadParameterLayers(instance, clusters, secrets));
}

/** Returns the layers, the lowest first. */
export async function loadParameterLayers(
  instance: ParameterOwner,
  clusters: ParameterSources,
  secrets: ReadonlyMap<string, Secret> = noSecrets.osParameters,
): Promise<readonly ParameterLayer[]> {
  const profileLayers = async (names: readonly string[]): Promise<readonly ParameterLayer[]> =>
    (await Promise.all(names.map((name) => clusters.loadProfile(name)))).flatMap((profile) =>
      profile === undefined ? [] : [profileLayer(profile)],
    );
  const [global, settings, profiles] = await Promise.all([
    profileLayers([GLOBAL_PROFILE]),
    Promise.all(osLayerNames(instance.osType).map((name) => clusters.loadOs(name))),
    profileLayers(instance.profiles.toReversed()),
  ]);
  return [...global, ...settings.map(osLayer), ...profiles, instanceLayer(instance, secrets)];
}

/**
 * Returns the names under which an administrator configures an OS: `debootstrap+bookworm` →
 * `debootstrap`, `debootstrap+bookworm`.
 */
export function osLayerNames(osType: string | null): readonly string[] {
  if (osType === null) return [];
  const { name } = splitOsName(osType);
  return name === osType ? [name] : [name, osType];
}
