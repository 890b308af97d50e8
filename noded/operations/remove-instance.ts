import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { removeLogs } from '../host/install-log.ts';
import type { JobHandler } from '../jobs/job-handler.ts';
import { removeAuditLog } from '../lifecycle/audit-log.ts';
import { beginRemoval } from '../records/install-states.ts';
import { instanceLock, type OperationDependencies } from './operation-dependencies.ts';

export function removeInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_REMOVE'>> {
  const { instances, outcomes, runner, lifecycles, disks, logDir, clock } = dependencies;
  return {
    locks: (opcode) => [instanceLock(opcode.name)],
    prepare: async (opcode) => {
      const instance = await instances.findByName(opcode.name);
      await runner.checkDisksUnused(instance);
      return async (context) => {
        await runner.stop(instance, opcode.shutdownTimeoutS, context, 'terminate');
        const [uuid, beganAtMs] = [instance.uuid, clock.now()];
        await disks.remove(instance, async () => {
          try {
            await instances.update(uuid, (current) =>
              beginRemoval(current, context.jobId, beganAtMs),
            );
          } catch (error) {
            // There may be room once its disks are gone.
            if (!isAppError(error, 'DISK_FULL')) throw error;
            await outcomes.noteRemoval(uuid, { jobId: context.jobId, beganAtMs });
          }
        });
        await removeLogs(logDir, uuid);
        await removeAuditLog(logDir, uuid);
        lifecycles.forget(uuid);
        if (outcomes.removalOf(uuid) !== undefined)
          context.report.log('its disks are gone; its record goes when the store has room', 'warn');
        await outcomes.endRemoval(uuid);
        return { name: instance.name };
      };
    },
  };
}
