import type { JobRecord } from '#shared/contract/job.ts';
import { instanceMigrate, instanceMove } from '#shared/contract/opcode.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import type { MigrationTargetClient } from './migration-target-client.ts';

export interface EndInterruptedMovesDependencies {
  /** Returns whether a record's node name means this node. */
  readonly owns: (node: string) => boolean;
  readonly instances: Pick<InstanceRepository, 'findByName'>;
  readonly clientOf: (node: string) => Pick<MigrationTargetClient, 'endRemains'>;
  readonly logger: Logger;
}

const ANSWER_TIMEOUT_MS = 15_000;
/** Inputs of jobs that move: instance and target. */
const ofMove = instanceMove.or(instanceMigrate);

/**
 * Ends arrivals of interrupted moves on the target nodes, which would end them after a timeout. A
 * node that does not answer ends them by that, or at its own start.
 */
export async function endInterruptedMoves(
  interrupted: readonly Pick<JobRecord, 'input'>[],
  { owns, instances, clientOf, logger }: EndInterruptedMovesDependencies,
  signal: AbortSignal,
): Promise<void> {
  for (const { input } of interrupted) {
    const { name, node } = ofMove.safeParse(input).data ?? {};
    if (name === undefined || node === undefined || owns(node)) continue;
    try {
      const { uuid, primaryNode } = await instances.findByName(name);
      // The target takes an instance that it already owns by itself.
      if (!owns(primaryNode)) continue;
      const within = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]);
      const { hadArrived } = await clientOf(node).endRemains(uuid, within);
      if (hadArrived) logger.warn('arrival.ended-elsewhere', { instance: uuid, node });
    } catch (error) {
      if (signal.aborted) return;
      const level = isAppError(error, 'NODE_UNREACHABLE') ? 'warn' : 'error';
      logger[level]('arrival.not-ended-elsewhere', { instance: name, node, err: error });
    }
  }
}
