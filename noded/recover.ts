import type { Clock } from '#shared/clock/clock.ts';
import type { Logger } from '#shared/log/log.ts';
import type { AdoptedMachine, Hypervisor } from './hypervisor/hypervisor.ts';
import type { InstanceRepository } from './records/instance-repository.ts';
import type { InstanceRunner } from './instances/instance-runner.ts';
import type { MachineKeeper } from './instances/machine-keeper.ts';
import type { Views } from './instances/views.ts';
import { failInterruptedJobs } from './jobs/fail-interrupted.ts';
import type { JobRepository } from './jobs/job-repository.ts';
import type { MetadLink } from './metad-link/metad-link.ts';
import type { ChannelNetwork } from './network/channel-network.ts';

export interface RecoverDependencies {
  readonly hypervisor: Hypervisor;
  readonly network: ChannelNetwork;
  readonly metad: MetadLink;
  readonly keeper: MachineKeeper;
  readonly runner: InstanceRunner;
  readonly views: Views;
  readonly instances: InstanceRepository;
  readonly jobs: JobRepository;
  /** Whether what a record names as its node is this one. */
  readonly owns: (node: string | undefined) => boolean;
  readonly logger: Logger;
  readonly clock: Clock;
}

const INTERRUPTED = 'the node daemon was restarted while it ran';

/**
 * Finds again what an earlier daemon left: running instances are taken over untouched; installations cannot go on without their
 * secrets, so their machines are ended and they are told as failed. Views of machines that are no more are dropped.
 */
export async function recover(dependencies: RecoverDependencies): Promise<void> {
  await failInterruptedJobs(({ node }) => dependencies.owns(node), INTERRUPTED, dependencies);
  const { instances: views } = await dependencies.metad.status();
  for (const view of views) dependencies.keeper.continueRevisions(view.revision);
  const adopted = await dependencies.hypervisor.adopt();
  for (const survivor of adopted) {
    try {
      await takeOver(survivor, dependencies);
    } catch (error) {
      // One machine that cannot be taken over must not keep the others, and the daemon, from working.
      const { uuid } = survivor.machine;
      dependencies.logger.error('machine.not-taken-over', { machine: uuid, err: error });
    }
  }
  await failInterruptedInstalls(dependencies);
  await dropStaleViews(dependencies);
}

async function takeOver(
  { machine, meta }: AdoptedMachine,
  { instances, keeper, network, runner, views, logger }: RecoverDependencies,
): Promise<void> {
  const { uuid } = machine;
  const device = meta['device'] ? meta['device'] : null;
  const instance = await instances.findByUuid(uuid);
  if (instance === undefined || meta['kind'] !== 'run') {
    logger.warn('machine.ended-after-restart', { machine: uuid, kind: meta['kind'] });
    await machine.kill();
    if (device !== null) await network.releaseTap(device);
    return;
  }
  await keeper.adopt(machine, instance, device, (tap, revision) =>
    views.forRun(uuid, tap, revision),
  );
  runner.watchReady(uuid);
  logger.info('machine.adopted', { instance: instance.name, machine: machine.pid });
}

async function failInterruptedInstalls({
  instances,
  owns,
  clock,
}: RecoverDependencies): Promise<void> {
  for (const instance of await instances.list()) {
    if (!owns(instance.primaryNode) || instance.installState !== 'installing') continue;
    await instances.update(instance.uuid, (current) => ({
      ...current,
      installState: 'failed',
      adminState: 'down',
      install: current.install && {
        ...current.install,
        state: 'failed',
        endedAtMs: clock.now(),
        error: {
          code: 'JOB_INTERRUPTED',
          message: INTERRUPTED,
          hint: `gnt-instance reinstall ${current.name}`,
        },
      },
    }));
  }
}

async function dropStaleViews({ metad, keeper, logger }: RecoverDependencies): Promise<void> {
  const { instances } = await metad.status();
  for (const view of instances) {
    if (keeper.get(view.uuid) !== undefined) continue;
    logger.warn('view.dropped', { uuid: view.uuid });
    await metad.deleteView(view.uuid);
  }
}
