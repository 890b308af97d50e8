import type { Clock } from '#shared/clock/clock.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { settleGuest } from '../cluster/migration/settle-guests.ts';
import { isOwnForGood, returnDepartures } from '../cluster/migration/settle-moves.ts';
import type { InstanceDisks } from '../storage/instance-disks.ts';
import type { MovingDisks } from '../storage/moving-disks.ts';
import type { SnapshotDisks } from '../storage/snapshot-disks.ts';
import type { Hypervisor } from '../vmm/hypervisor.ts';
import { interruptInstall } from '../records/install-states.ts';
import type { InstanceRepository } from '../records/instance-repository.ts';
import type { InstanceIndex } from '../records/instance-index.ts';
import { readIndexed } from '../records/read-indexed.ts';
import type { GuestReports } from '../instances/reports/guest-reports.ts';
import type { Lifecycles } from '../instances/run-lists/lifecycles-contract.ts';
import { settlePorts } from '../operations/plug-parts.ts';
import type { Outcomes } from '../records/outcomes.ts';
import type { MachineKeeper } from '../instances/machines/machine-keeper.ts';
import type { Orphans } from '../instances/machines/orphans.ts';
import { failInterruptedJobs } from '../jobs/fail-interrupted.ts';
import type { JobRepository } from '../jobs/job-repository.ts';
import type { Machine } from '../vmm/machine.ts';
import type { MetadLink } from '../net/metad-link/metad-link.ts';
import type { ChannelNetwork } from '../net/channel/channel-network.ts';

export interface RecoverDependencies {
  readonly hypervisor: Hypervisor;
  readonly network: ChannelNetwork;
  readonly metad: MetadLink;
  readonly keeper: MachineKeeper;
  readonly orphans: Orphans;
  readonly guestReports: Pick<GuestReports, 'followAdopted'>;
  readonly lifecycles: Pick<Lifecycles, 'followAdopted'>;
  readonly instances: InstanceRepository;
  readonly index: Pick<InstanceIndex, 'list' | 'doubt'>;
  readonly disks: Pick<
    InstanceDisks,
    'list' | 'settle' | 'listCopies' | 'settleCopy' | 'removeSeed'
  >;
  readonly snapshots: Pick<SnapshotDisks, 'isUnfinished'>;
  readonly moving: Pick<MovingDisks, 'listLeaving' | 'comeBack' | 'removeLeft'>;
  readonly jobs: JobRepository;
  readonly outcomes: Pick<Outcomes, 'resume'>;
  /** Returns whether a node name in a record means this node. */
  readonly owns: (node: string | undefined) => boolean;
  readonly nodeName: string;
  readonly logger: Logger;
  readonly clock: Clock;
}

const INTERRUPTED = 'the node daemon was restarted while the job was running';

/**
 * Recovers the state that an earlier daemon left.
 * - Running instances are taken over untouched.
 * - Installations cannot continue without their secrets. Their QEMU processes are ended and they
 *   fail. Instances whose reinstallation has destroyed nothing return to their former state.
 * - Views without a QEMU process are dropped.
 * - A QEMU process whose record is missing, unreadable or unavailable continues as an orphan: a
 *   store that lost data must not cut the power of a guest.
 * @returns the jobs that ended with the earlier daemon
 */
export async function recover(dependencies: RecoverDependencies): Promise<readonly JobRecord[]> {
  const { metad, keeper, guestReports, lifecycles, logger } = dependencies;
  // Write stored ends first: these jobs ended and were not interrupted.
  await dependencies.outcomes.resume();
  const isOwn = ({ node }: JobRecord): boolean => dependencies.owns(node);
  const interrupted = await failInterruptedJobs(isOwn, INTERRUPTED, dependencies);
  const { instances: views } = await metad.status();
  for (const view of views) keeper.continueRevisions(view.revision);
  for (const survivor of await dependencies.hypervisor.adopt()) {
    const { machine, meta } = survivor;
    // If QEMU's own description is lost, metad still knows these fields.
    const view = views.find(({ uuid }) => uuid === machine.uuid);
    const kind = meta['kind'] ?? (view?.mode === 'install' ? 'appliance' : 'run');
    const device = meta['device'] || view?.device || null;
    const isGuest = kind === 'run' || kind === 'moving';
    if (isGuest && (await settleGuest(machine, kind, dependencies))) {
      if (kind === 'moving') await machine.writeMeta({ ...meta, kind: 'run' });
      // Keep it first, so that its disks never look unused.
      const kept = keeper.keepOrphan(machine, meta['instance'] ?? machine.uuid, device);
      guestReports.followAdopted(kept);
      lifecycles.followAdopted(kept);
      await endPause(machine, dependencies);
      await settlePortsOf(machine, dependencies);
      continue;
    }
    logger.warn('machine.ended-after-restart', { machine: machine.uuid, kind });
    await machine.kill();
    if (device !== null) await dependencies.network.releaseTap(device);
  }
  await tellOrphans(dependencies);
  await failInterruptedInstalls(dependencies);
  await settleDisks(dependencies);
  await dropStaleViews(dependencies);
  return interrupted;
}

async function tellOrphans({
  orphans,
  logger,
}: Pick<RecoverDependencies, 'orphans' | 'logger'>): Promise<void> {
  await orphans.takeOverAll('warn');
  for (const { uuid, name } of orphans.list())
    logger.error('machine.orphan', { machine: uuid, instance: name });
}

/** Resumes a guest that a killed snapshot job left paused. */
async function endPause(
  machine: Machine,
  { snapshots, logger }: Pick<RecoverDependencies, 'snapshots' | 'logger'>,
): Promise<void> {
  try {
    if (!(await snapshots.isUnfinished(machine.uuid))) return;
    await machine.resume();
    logger.warn('machine.resumed', { machine: machine.uuid });
  } catch (error) {
    logger.error('machine.not-resumed', { machine: machine.uuid, err: error });
  }
}

/**
 * Corrects the record by the parts that an interrupted job attached or detached, before the guest
 * reads its metadata.
 */
export async function settlePortsOf(
  machine: Machine,
  { instances, logger }: Pick<RecoverDependencies, 'instances' | 'logger'>,
): Promise<void> {
  try {
    const instance = await instances.findByUuid(machine.uuid);
    if (instance !== undefined) await settlePorts(instance, machine, instances);
  } catch (error) {
    logger.error('machine.ports-not-settled', { machine: machine.uuid, err: error });
  }
}

async function failInterruptedInstalls({
  instances,
  index,
  owns,
  clock,
  logger,
}: RecoverDependencies): Promise<void> {
  for (const { uuid, primaryNode, installState } of await index.list()) {
    if (!owns(primaryNode) || installState !== 'installing') continue;
    try {
      await instances.update(uuid, (current) =>
        interruptInstall(current, INTERRUPTED, clock.now()),
      );
    } catch (error) {
      // An unreadable record must not delay the others.
      if (isAppError(error, 'STORE_UNAVAILABLE')) throw error;
      logger.error('install.not-failed', { instance: uuid, err: error });
    }
  }
}

/**
 * Settles leftovers beside instances' disks: of a reinstallation, with the help of the record, and
 * of an interrupted start.
 */
async function settleDisks(dependencies: RecoverDependencies): Promise<void> {
  const { disks, owns, logger } = dependencies;
  await returnDepartures(dependencies).catch((error: unknown) => {
    logger.error('departures.not-listed', { err: error });
  });
  // Disks of another node's instance arrived here, but the instance did not.
  const isThere = (uuid: string) => isOwnForGood(uuid, dependencies);
  const copies = await disks.listCopies().catch((error: unknown) => {
    logger.error('copies.not-listed', { err: error });
    return [];
  });
  for (const uuid of copies) {
    try {
      await disks.settleCopy(uuid, isThere);
      logger.warn('copy.settled', { instance: uuid });
    } catch (error) {
      logger.error('copy.not-settled', { instance: uuid, err: error });
    }
  }
  const own = await disks.list().catch((error: unknown) => {
    logger.error('disks.not-listed', { err: error });
    return [];
  });
  const there = new Set([...copies, ...own]);
  const hasSome = (instance: { readonly uuid: string; readonly primaryNode: string }): boolean =>
    owns(instance.primaryNode) && there.has(instance.uuid);
  for await (const slice of readIndexed(dependencies, hasSome)) {
    for (const instance of slice) {
      try {
        await disks.removeSeed(instance);
        const files = await disks.settle(instance, (zeroing) => {
          void tellZeroed(zeroing, instance.name, logger);
        });
        if (files.length > 0) logger.warn('disks.settled', { instance: instance.name, files });
      } catch (error) {
        logger.error('disks.not-settled', { instance: instance.name, err: error });
      }
    }
  }
}

async function tellZeroed(zeroing: Promise<void>, instance: string, logger: Logger): Promise<void> {
  logger.warn('disks.zeroing', { instance });
  try {
    await zeroing;
    logger.info('disks.zeroed', { instance });
  } catch (error) {
    // Its next job tries again, and reports the failure.
    logger.error('disks.not-zeroed', { instance, err: error });
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
