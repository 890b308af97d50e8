import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { removeLogs } from '../host/install-log.ts';
import type { KeptMachine } from '../instances/machines/machine-keeper.ts';
import { readKeptRecord } from '../instances/machines/orphans.ts';
import type { JobContext, JobHandler } from '../jobs/job-handler.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/**
 * Gives an orphan the record that was kept beside it, and claims its name, addresses and MACs
 * again. Then takes it over as after a restart of the daemon, without touching its guest.
 */
export function adoptInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_ADOPT'>> {
  const { instances, orphans, owns, nodeName } = dependencies;
  return {
    prepare: async ({ name }) => {
      const orphan = orphans.find(name);
      if (orphan === undefined) {
        throw new AppError('INSTANCE_NOT_FOUND', `there is no orphaned instance '${name}'`, {
          details: { name },
          hint: 'gnt-instance list shows orphaned instances as ERROR_orphan.',
        });
      }
      const { uuid } = orphan.machine;
      const current = await readable(instances.findByUuid(uuid));
      if (current !== undefined && !owns(current.primaryNode)) {
        throw new AppError(
          'CONFLICT',
          `'${current.name}' is now an instance of node ${current.primaryNode}`,
          {
            details: { node: current.primaryNode },
            hint: `Stop the orphan on this node: gnt-instance remove ${uuid}`,
          },
        );
      }
      const kept = current === undefined ? await readKeptRecord(orphan, nodeName) : undefined;
      if (kept !== undefined) await instances.checkRestorable(kept);
      return async ({ report }) => {
        if (kept !== undefined) {
          await instances.restore(kept);
          report.log(`'${kept.name}' has its record back, from the copy in its run directory`);
        }
        await orphans.takeOver(uuid);
        return { name: kept?.name ?? current?.name ?? name, uuid };
      };
    },
  };
}

/**
 * Extends a removal to orphans: the QEMU process, its disks, its logs and the claims of its name.
 */
export function orRemoveOrphan(
  handler: JobHandler<OpcodeOf<'INSTANCE_REMOVE'>>,
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_REMOVE'>> {
  const { instances, orphans } = dependencies;
  return {
    prepare: async (opcode, signal) => {
      try {
        await instances.findByName(opcode.name);
      } catch (error) {
        const orphan = isAppError(error, 'INSTANCE_NOT_FOUND') && orphans.find(opcode.name);
        if (!orphan) throw error;
        return (context) => removeOrphan(orphan, opcode, dependencies, context);
      }
      return handler.prepare(opcode, signal);
    },
  };
}

async function removeOrphan(
  orphan: KeptMachine,
  { name, shutdownTimeoutS }: OpcodeOf<'INSTANCE_REMOVE'>,
  { instances, orphans, disks, logDir }: OperationDependencies,
  context: JobContext,
): Promise<unknown> {
  const { uuid } = orphan.machine;
  await orphans.powerOff(orphan, shutdownTimeoutS, context);
  await disks.remove({ uuid });
  await removeLogs(logDir, uuid);
  await instances.dropClaims(uuid);
  return { name, uuid };
}

/** Treats an unreadable record as missing: the kept record takes its place. */
async function readable<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (isAppError(error, 'RECORD_UNREADABLE')) return undefined;
    throw error;
  }
}
