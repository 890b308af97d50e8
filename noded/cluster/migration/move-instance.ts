import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError, tellableMessage } from '#shared/errors/app-error.ts';
import type { SendRate } from '#shared/stream/send-rate.ts';
import type { Departure } from '../../storage/moving-disks.ts';
import type { JobContext } from '../../jobs/job-handler.ts';
import type { MigrationTargetClient } from './migration-target-client.ts';
import { sendFiles } from './send-files.ts';
import {
  decideDeparture,
  notTaken,
  removeDeparted,
  type SettleMovesDependencies,
} from './settle-moves.ts';

export interface MoveDependencies extends Omit<SettleMovesDependencies, 'isTaken'> {
  readonly moving: SettleMovesDependencies['moving'] & {
    depart(instance: InstanceRecord): Promise<Departure>;
  };
  readonly target: MigrationTargetClient;
  /** null: no limit. */
  readonly rate: SendRate | null;
}

/** Limit for the target's confirmation; a job must not wait longer to end. */
const CONFIRM_TIMEOUT_MS = 30_000;
/** Limit for the target's removal of received files. */
const WITHDRAW_TIMEOUT_MS = 10_000;

/**
 * Moves a stopped instance to another node. One commit is the only switch. This node writes it
 * after the target has read all disks again and synced them. Before it only a folder was renamed
 * here; after it the instance belongs to the target. After a crash the record decides
 * (settle-moves.ts).
 * @throws AppError the target's refusal, DISK_FULL, NODE_UNREACHABLE, CONFLICT
 */
export async function moveInstance(
  instance: InstanceRecord,
  node: string,
  context: JobContext,
  dependencies: MoveDependencies,
): Promise<void> {
  const { moving, target, rate } = dependencies;
  const { uuid } = instance;
  await using departure = await moving.depart(instance);
  try {
    const { session, serialNo, takesStreams } = await target.begin(
      uuid,
      departure.files.map(({ name, sizeBytes }) => ({ name, sizeBytes })),
      context.signal,
    );
    const at = { uuid, session };
    const to = { ...at, takesStreams, rate };
    const digests = await sendFiles(departure.files, to, context, target);
    context.report.log(`node ${node} verifies the received files`);
    await target.verify(at, digests, context.signal);
    context.signal.throwIfAborted();
    await handOver(instance, { node, serialNo }, departure, dependencies);
  } catch (error) {
    await withdraw(uuid, node, context, target);
    throw error;
  }
  context.report.log(`${instance.name} is on ${node}`);
  await removeHere(uuid, node, context, dependencies);
}

/** Commits the switch. A cancelled job also completes this. */
async function handOver(
  { uuid, name, primaryNode }: InstanceRecord,
  { node, serialNo }: { readonly node: string; readonly serialNo: number },
  departure: Departure,
  dependencies: MoveDependencies,
): Promise<void> {
  // Renamed before the commit, so that a crash leaves no doubt about the disks.
  await departure.leave();
  try {
    await dependencies.instances.update(uuid, (current) => {
      if (current.primaryNode === primaryNode && current.serialNo === serialNo)
        return { ...current, primaryNode: node };
      throw new AppError('CONFLICT', `'${name}' was changed while it moved`, {
        hint: `A gnt-noded may have been restarted. Check gnt-instance info ${name}, and repeat the move.`,
      });
    });
  } catch (error) {
    // A commit with an error may have succeeded. The record decides.
    if ((await decideDeparture(uuid, dependencies)) === undefined) throw error;
  }
}

export async function withdraw(
  uuid: string,
  node: string,
  { report }: JobContext,
  target: MigrationTargetClient,
): Promise<void> {
  try {
    await target.end(uuid, AbortSignal.timeout(WITHDRAW_TIMEOUT_MS));
  } catch (error) {
    report.log(
      `node ${node} does not confirm that it removed the received files (${tellableMessage(error)}): it removes them at its next start, or after ten minutes of silence`,
      'warn',
    );
  }
}

/** Removes the old disks after the target has confirmed its own. */
export async function removeHere(
  uuid: string,
  node: string,
  { report }: JobContext,
  dependencies: Pick<MoveDependencies, 'target' | 'nodeName' | 'instances' | 'moving' | 'logger'>,
): Promise<void> {
  const { target, logger } = dependencies;
  try {
    const { isTaken, isLost } = await target.end(uuid, AbortSignal.timeout(CONFIRM_TIMEOUT_MS));
    if (!isTaken) throw notTaken(node);
    if (isLost)
      report.log(
        `the guest did not resume: its QEMU process on ${node} ended at that moment. Start it with gnt-instance startup`,
        'warn',
      );
    await removeDeparted(uuid, dependencies);
  } catch (error) {
    logger.warn('departure.not-removed', { instance: uuid, err: error });
    report.log(
      `the old disks are still on this node (${tellableMessage(error)}): gnt-noded removes them once ${node} confirms its copy, and asks at least every ten minutes`,
      'warn',
    );
  }
}
