import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { ViewBoot } from '#shared/contract/boot-view.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import type { Lifecycles } from '../run-lists/lifecycles-contract.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import type { BootViews } from './boot-views.ts';
import { noSecrets, type JobSecrets } from '../parameters/job-secrets.ts';
import { loadParameters } from '../parameters/load-parameters.ts';
import type { OsParameters } from '../parameters/os-parameters.ts';
import { planView, type InstallContent } from './plan-view.ts';

/** Collects what a view is made of. */
export interface Views {
  /** The view of an instance in a normal run, as the store has it now. */
  forRun(
    uuid: string,
    device: string,
    revision: number,
    secrets?: JobSecrets,
  ): Promise<InstanceView>;
  /** The same where nothing of the instance was changed: it boots what it was given. */
  asGiven(uuid: string, device: string, revision: number): Promise<InstanceView>;
  /**
   * The same for a machine that is about to start: without its BootEnv it would boot something
   * else.
   * @throws AppError BOOTENV_*
   */
  forStart(
    uuid: string,
    device: string,
    revision: number,
    secrets: JobSecrets,
  ): Promise<InstanceView>;
  /** @param parameters those that the installation was checked with */
  forInstall(
    instance: InstanceRecord,
    device: string,
    revision: number,
    install: InstallContent,
    parameters: OsParameters,
    /** Absent when the machine does not boot from its channel. */
    boot?: ViewBoot,
  ): Promise<InstanceView>;
}

export function createViews(
  instances: InstanceRepository,
  clusters: ClusterRepository,
  lifecycles: Pick<Lifecycles, 'planView'>,
  bootViews: Pick<BootViews, 'forRun' | 'asGiven' | 'forStart'>,
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
    // This comes last: who asks for its files waits from now on until metad has the view.
    const boot = await bootOf(instance, secrets);
    return planView({
      ...{ instance, device, revision, install: null, parameters, cluster, lifecycle, boot },
    });
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
