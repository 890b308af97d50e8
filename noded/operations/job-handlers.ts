import type { Opcode } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { JobHandler, JobHandlers } from '../jobs/job-handler.ts';
import { exportInstanceHandler, removeExportHandler } from './backup.ts';
import { modifyClusterHandler, modifyOsHandler } from './change-cluster.ts';
import {
  modifyInstanceHandler,
  removeInstanceHandler,
  renameInstanceHandler,
} from './change-instance.ts';
import { copyInstanceHandler } from './copy-instance.ts';
import { createInstanceHandler } from './create-instance.ts';
import { growDiskHandler } from './grow-disk.ts';
import type { OperationDependencies } from './operation-dependencies.ts';
import { adoptInstanceHandler, orRemoveOrphan } from './orphans.ts';
import { runScriptHandler } from './run-script.ts';
import { rebootInstanceHandler, startInstanceHandler, stopInstanceHandler } from './power.ts';
import { queryInstanceHandler } from './query-instance.ts';
import { reinstallInstanceHandler } from './reinstall-instance.ts';

/** Every opcode has its handler: a missing one does not compile. */
export function createJobHandlers(dependencies: OperationDependencies): JobHandlers {
  const here = <Op extends InstanceOpcode>(handler: JobHandler<Op>): JobHandler<Op> =>
    onPrimaryNode(handler, dependencies);
  /** What changes the cluster, and is about no instance that is there, is nothing for who left it. */
  const asMember = <Op extends Opcode>(handler: JobHandler<Op>): JobHandler<Op> => ({
    locks: (opcode) => handler.locks(opcode),
    prepare: async (opcode, signal) => {
      dependencies.membership.requireMember();
      return handler.prepare(opcode, signal);
    },
  });
  return {
    INSTANCE_CREATE: asMember(createInstanceHandler(dependencies)),
    INSTANCE_REINSTALL: here(reinstallInstanceHandler(dependencies)),
    INSTANCE_SET_PARAMS: here(modifyInstanceHandler(dependencies)),
    INSTANCE_QUERY_DATA: here(queryInstanceHandler(dependencies)),
    INSTANCE_REMOVE: orRemoveOrphan(here(removeInstanceHandler(dependencies)), dependencies),
    INSTANCE_ADOPT: asMember(adoptInstanceHandler(dependencies)),
    INSTANCE_RENAME: here(renameInstanceHandler(dependencies)),
    INSTANCE_COPY: here(copyInstanceHandler(dependencies)),
    INSTANCE_STARTUP: here(startInstanceHandler(dependencies)),
    INSTANCE_SHUTDOWN: here(stopInstanceHandler(dependencies)),
    INSTANCE_REBOOT: here(rebootInstanceHandler(dependencies)),
    INSTANCE_GROW_DISK: here(growDiskHandler(dependencies)),
    INSTANCE_RUN_SCRIPT: here(runScriptHandler(dependencies)),
    BACKUP_EXPORT: here(exportInstanceHandler(dependencies)),
    BACKUP_REMOVE: removeExportHandler(dependencies),
    OS_SET_PARAMS: asMember(modifyOsHandler(dependencies)),
    CLUSTER_SET_PARAMS: asMember(modifyClusterHandler(dependencies)),
  };
}

type InstanceOpcode = Extract<Opcode, { readonly name: string }>;

/**
 * Disks, machine and view of an instance are on one node: nobody else may act as if they were gone.
 */
function onPrimaryNode<Op extends InstanceOpcode>(
  handler: JobHandler<Op>,
  { instances, owns }: OperationDependencies,
): JobHandler<Op> {
  return {
    locks: (opcode) => handler.locks(opcode),
    prepare: async (opcode, signal) => {
      const { name, primaryNode } = await instances.findByName(opcode.name);
      if (owns(primaryNode)) return handler.prepare(opcode, signal);
      throw new AppError('CONFLICT', `instance '${name}' is on node ${primaryNode}`, {
        details: { node: primaryNode },
        hint: `ask the node daemon of ${primaryNode}`,
      });
    },
  };
}
