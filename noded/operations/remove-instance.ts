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
  const { instances, runner, lifecycles, disks, logDir, clock } = dependencies;
  return {
    locks: (opcode) => [instanceLock(opcode.name)],
    prepare: async (opcode) => {
      const instance = await instances.findByName(opcode.name);
      await runner.checkDisksUnused(instance);
      return async (context) => {
        await runner.stop(instance, opcode.shutdownTimeoutS, context, 'terminate');
        await disks.remove(instance, async () => {
          try {
            await instances.update(instance.uuid, (current) =>
              beginRemoval(current, context.jobId, clock.now()),
            );
          } catch (error) {
            // There is room once its disks are gone.
            if (!isAppError(error, 'DISK_FULL')) throw error;
          }
        });
        await removeLogs(logDir, instance.uuid);
        await removeAuditLog(logDir, instance.uuid);
        lifecycles.forget(instance.uuid);
        await instances.remove(instance.uuid);
        return { name: instance.name };
      };
    },
  };
}
