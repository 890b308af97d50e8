import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { Secret } from '#shared/secret/secret.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import { noSecrets } from './job-secrets.ts';
import { instanceLayer, type OsParameters, osLayer, resolveParameters } from './os-parameters.ts';

/** What an instance's parameters are made of. */
export type ParameterOwner = Pick<
  InstanceRecord,
  'osType' | 'osParameters' | 'osParametersPrivate' | 'secretNames'
>;

/**
 * The OS parameters in force for an instance, out of every layer that there is: the OS, its
 * variant, the instance, what the running job was given. A further kind of layer is put in here,
 * and nowhere else.
 */
export async function loadParameters(
  instance: ParameterOwner,
  clusters: Pick<ClusterRepository, 'loadOs'>,
  secrets: ReadonlyMap<string, Secret> = noSecrets.osParameters,
): Promise<OsParameters> {
  const settings = await Promise.all(
    osLayerNames(instance.osType).map((name) => clusters.loadOs(name)),
  );
  return resolveParameters([...settings.map(osLayer), instanceLayer(instance, secrets)]);
}

/**
 * Under which names an administrator sets something for an OS: `debootstrap+bookworm` →
 * `debootstrap`, `debootstrap+bookworm`
 */
export function osLayerNames(osType: string | null): readonly string[] {
  if (osType === null) return [];
  const [name = osType] = osType.split('+');
  return name === osType ? [name] : [name, osType];
}
