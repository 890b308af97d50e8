import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import type { InstanceRepository } from '../records/instance-repository.ts';
import { noSecrets, type JobSecrets } from './job-secrets.ts';
import { planView, type InstallContent } from './plan-view.ts';

/** Collects what a view is made of. */
export interface Views {
  /** Of an instance in a normal run, as the store has it now. */
  forRun(
    uuid: string,
    device: string,
    revision: number,
    secrets?: JobSecrets,
  ): Promise<InstanceView>;
  forInstall(
    instance: InstanceRecord,
    device: string,
    revision: number,
    install: InstallContent,
    secrets: JobSecrets,
  ): Promise<InstanceView>;
}

export function createViews(instances: InstanceRepository, clusters: ClusterRepository): Views {
  const collect = async (
    instance: InstanceRecord,
    device: string,
    revision: number,
    install: InstallContent | null,
    secrets: JobSecrets,
  ): Promise<InstanceView> =>
    planView({
      instance,
      device,
      revision,
      install,
      secrets: secrets.osParameters,
      cluster: await clusters.load(),
      defaults: await loadDefaults(clusters, instance.osType),
    });
  return {
    forInstall: (instance, device, revision, install, secrets) =>
      collect(instance, device, revision, install, secrets),
    forRun: async (uuid, device, revision, secrets = noSecrets) => {
      const instance = await instances.findByUuid(uuid);
      if (instance === undefined) throw new Error(`instance ${uuid} is gone`);
      return collect(instance, device, revision, null, secrets);
    },
  };
}

/** Ganeti's layers below the instance: the OS by name, then with its variant. */
async function loadDefaults(
  clusters: ClusterRepository,
  osType: string | null,
): Promise<{ public: Record<string, string>; private: Record<string, string> }> {
  const defaults = { public: {}, private: {} };
  for (const name of osLayers(osType)) {
    const settings = await clusters.loadOs(name);
    Object.assign(defaults.public, settings.osParameters);
    Object.assign(defaults.private, settings.osParametersPrivate);
  }
  return defaults;
}

/** `debootstrap+bookworm` → `debootstrap`, `debootstrap+bookworm` */
export function osLayers(osType: string | null): readonly string[] {
  if (osType === null) return [];
  const [name = osType] = osType.split('+');
  return name === osType ? [name] : [name, osType];
}
