import type { JobRecord } from '#shared/contract/job.ts';
import { instanceMigrate, instanceMove } from '#shared/contract/opcode.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import type { MigrationTargetClient } from './migration-target-client.ts';

export interface EndInterruptedMovesDependencies {
  /** Whether what a record names as its node is this one. */
  readonly owns: (node: string) => boolean;
  readonly instances: Pick<InstanceRepository, 'findByName'>;
  readonly clientOf: (node: string) => Pick<MigrationTargetClient, 'endRemains'>;
  readonly logger: Logger;
}

const ANSWER_TIMEOUT_MS = 15_000;
/** Inputs of jobs that move: which instance, and where to. */
const ofMove = instanceMove.or(instanceMigrate);

/**
 * Tells the other nodes of moves that ended with the daemon before this one that nobody brings them
 * anything any more, which they would notice by silence otherwise. One that cannot be asked ends it
 * so, or at its own start.
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
      // What is that node's by now it takes, and needs nobody for it.
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
