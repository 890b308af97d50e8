import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { ViewBoot } from '#shared/contract/boot-view.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import type { Lifecycles } from '../run-lists/lifecycles-contract.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import type { Identities } from '../identity/identities.ts';
import type { BootViews } from './boot-views.ts';
import { noSecrets, type JobSecrets } from '../parameters/job-secrets.ts';
import { loadParameters } from '../parameters/load-parameters.ts';
import type { OsParameters } from '../parameters/os-parameters.ts';
import { planView, type InstallContent } from './plan-view.ts';

/** Collects the parts of a view. */
export interface Views {
  /** Returns the view of an instance in a normal run, from its stored record. */
  forRun(
    uuid: string,
    device: string,
    revision: number,
    secrets?: JobSecrets,
  ): Promise<InstanceView>;
  /** Returns the view of an unchanged instance, with its last boot. */
  asGiven(uuid: string, device: string, revision: number): Promise<InstanceView>;
  /**
   * Returns the view of a machine that is about to start. Without its BootEnv it would boot from
   * another device.
   * @throws AppError BOOTENV_*
   */
  forStart(
    uuid: string,
    device: string,
    revision: number,
    secrets: JobSecrets,
  ): Promise<InstanceView>;
  /** @param parameters those checked for this installation */
  forInstall(
    instance: InstanceRecord,
    device: string,
    revision: number,
    install: InstallContent,
    parameters: OsParameters,
    /** Absent if the machine does not boot from its channel. */
    boot?: ViewBoot,
  ): Promise<InstanceView>;
}

export function createViews(
  instances: InstanceRepository,
  clusters: ClusterRepository,
  lifecycles: Pick<Lifecycles, 'planView'>,
  bootViews: Pick<BootViews, 'forRun' | 'asGiven' | 'forStart'>,
  identities: Pick<Identities, 'planView'>,
): Views {
  const collect = async (
    { uuid, device, revision }: { uuid: string; device: string; revision: number },
    secrets: JobSecrets,
    bootOf: BootViews['forRun'],
  ): Promise<InstanceView> => {
    const instance = await instances.findByUuid(uuid);
    if (instance === undefined) throw new Error(`instance ${uuid} no longer exists`);
    const parameters = await loadParameters(instance, clusters, secrets.osParameters);
    const cluster = await clusters.load();
    const lifecycle = await lifecycles.planView(instance, new Set(parameters.keys()));
    // Last, because requests for its files wait from now until metad has the view.
    const boot = await bootOf(instance, secrets);
    const view = planView({
      ...{ instance, device, revision, install: null, parameters, cluster, lifecycle, boot },
    });
    const identity = await identities.planView(view, instance, cluster);
    return identity === undefined ? view : { ...view, identity };
  };
  return {
    forInstall: async (instance, device, revision, install, parameters, boot) =>
      planView({
        ...{ instance, device, revision, install, parameters, boot },
        cluster: await clusters.load(),
      }),
    forRun: (uuid, device, revision, secrets = noSecrets) =>
      collect({ uuid, device, revision }, secrets, bootViews.forRun),
    asGiven: (uuid, device, revision) =>
      collect({ uuid, device, revision }, noSecrets, bootViews.asGiven),
    forStart: (uuid, device, revision, secrets) =>
      collect({ uuid, device, revision }, secrets, bootViews.forStart),
  };
}
