import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { removeLogs } from '../host/install-log.ts';
import type { JobHandler } from '../jobs/job-handler.ts';
import { removeAuditLog } from '../instances/run-lists/audit-log.ts';
import { beginRemoval } from '../records/install-states.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

export function removeInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_REMOVE'>> {
  const { instances, outcomes, runner, lifecycles, disks, logDir, clock } = dependencies;
  return {
    prepare: async (opcode) => {
      const instance = await instances.findByName(opcode.name);
      await runner.checkDisksUnused(instance);
      return async (context) => {
        await runner.stop(instance, opcode.shutdownTimeoutS, context, 'terminate');
        for (const line of await warnOfAbsent(disks, instance)) context.report.log(line, 'warn');
        const [uuid, beganAtMs] = [instance.uuid, clock.now()];
        await disks.remove(instance, async () => {
          try {
            await instances.update(uuid, (current) =>
              beginRemoval(current, context.jobId, beganAtMs),
            );
          } catch (error) {
            // Removing its disks may free space.
            if (!isAppError(error, 'DISK_FULL')) throw error;
            await outcomes.noteRemoval(uuid, { jobId: context.jobId, beganAtMs });
          }
        });
        await removeLogs(logDir, uuid);
        await removeAuditLog(logDir, uuid);
        lifecycles.forget(uuid);
        if (outcomes.removalOf(uuid) !== undefined)
          context.report.log(
            'its disks are removed; its record follows when the store has space',
            'warn',
          );
        await outcomes.endRemoval(uuid);
        return { name: instance.name };
      };
    },
  };
}

/**
 * Warns of volumes in a missing group. If the group comes back with its devices, they are orphans
 * that still take space.
 */
async function warnOfAbsent(
  disks: Pick<OperationDependencies['disks'], 'listAbsent'>,
  instance: InstanceRecord,
): Promise<readonly string[]> {
  const absent = await disks.listAbsent(instance);
  if (absent.length === 0) return [];
  const groups = [...new Set(absent.map((path) => path.split('/')[0] ?? ''))].join(', ');
  return [
    `this node has no volume group ${groups}, so its volumes stay there (${absent.join(', ')}). If the group comes back (pvs, vgs), gnt-node doctor lists them as orphaned; remove them with lvremove ${absent.join(' ')}`,
  ];
}
