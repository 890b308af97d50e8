import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError, tellableMessage } from '#shared/errors/app-error.ts';
import type { KeptMachine } from '../../instances/machines/machine-keeper.ts';
import type { JobContext } from '../../jobs/job-handler.ts';
import type { MigrationTargetClient } from './migration-target-client.ts';
import { mayBeElsewhere } from './plan-migration.ts';
import { settleGuest, type SettleGuestDependencies } from './settle-guests.ts';
import { decideDeparture, type SettleMovesDependencies } from './settle-moves.ts';

export interface CleanUpDependencies extends SettleGuestDependencies {
  readonly moving: SettleMovesDependencies['moving'];
  readonly keeper: { get(uuid: string): KeptMachine | undefined };
  /** All nodes but this one. */
  readonly others: ReadonlyMap<string, Pick<MigrationTargetClient, 'endRemains'>>;
}

/** A node that is down cleans up at its start. */
const ANSWER_TIMEOUT_MS = 15_000;

/**
 * Cleans up after an interrupted migration at once, as starts, sweeps and timeouts would do later.
 * The record decides the owner. It is rewritten before anything is ended, so that a pending commit
 * fails.
 * @returns whether its guest runs here
 * @throws AppError CONFLICT: it was given away meanwhile
 */
export async function cleanUpMigration(
  { uuid, name }: InstanceRecord,
  { report, signal }: Pick<JobContext, 'report' | 'signal'>,
  dependencies: CleanUpDependencies,
): Promise<boolean> {
  const { nodeName, moving, others } = dependencies;
  const wasLeaving = (await moving.listLeaving()).includes(uuid);
  const owner = await decideDeparture(uuid, dependencies);
  if (owner !== undefined) throw givenAway(name, owner);
  if (wasLeaving) report.log('its disks, which were leaving, are back in place');
  const isRunning = await letGoOn(uuid, report, dependencies);
  report.log(`the record of ${name} names ${nodeName}`);
  for (const [node, client] of others) {
    signal.throwIfAborted();
    const within = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]);
    try {
      const { hadArrived, hadLeft } = await client.endRemains(uuid, within);
      if (hadArrived) report.log(`${node} no longer waits for it`);
      if (hadLeft) report.log(`${node} has removed its earlier copies of the disks`);
      if (!hadArrived && !hadLeft) report.log(`${node} holds nothing of it`);
    } catch (error) {
      report.log(
        `${node} does not confirm that it holds nothing of it (${tellableMessage(error)}): it cleans up at its next start, or after ten minutes of silence`,
        'warn',
      );
    }
  }
  return isRunning;
}

async function letGoOn(
  uuid: string,
  report: JobContext['report'],
  dependencies: CleanUpDependencies,
): Promise<boolean> {
  const kept = dependencies.keeper.get(uuid);
  if (kept?.machine.isRunning() !== true || kept.kind !== 'run') return false;
  const { machine } = kept;
  const stood = mayBeElsewhere('run', await machine.migration.state());
  await settleGuest(machine, 'run', dependencies);
  report.log(
    stood
      ? 'its migration was about to finish, and the guest keeps running here'
      : 'the guest keeps running',
  );
  return true;
}

function givenAway(name: string, owner: string): AppError {
  return new AppError('CONFLICT', `'${name}' was handed over to ${owner} meanwhile`, {
    details: { name, node: owner },
    hint: `Repeat the command: ${owner} cleans up its part.`,
  });
}
