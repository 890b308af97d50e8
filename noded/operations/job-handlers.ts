import type { Opcode } from '#shared/contract/opcode.ts';
import { requireOnline } from '#shared/contract/node-flags.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { JobHandler, JobHandlers } from '../jobs/job-handler.ts';
import { exportInstanceHandler, removeExportHandler } from './backup.ts';
import { modifyClusterHandler, modifyOsHandler } from './change-cluster.ts';
import { modifyInstanceHandler } from './change-instance.ts';
import { modifyNodeHandler } from './change-node.ts';
import { copyInstanceHandler } from './copy-instance.ts';
import { removeBootObjectHandler, setBootContentHandler } from './boot-content.ts';
import { createInstanceHandler } from './create-instance.ts';
import { failoverInstanceHandler } from './failover-instance.ts';
import { growDiskHandler } from './grow-disk.ts';
import { moveInstanceHandler } from './move.ts';
import { migrateInstanceHandler } from './migrate.ts';
import type { OperationDependencies } from './operation-dependencies.ts';
import { adoptInstanceHandler, orRemoveOrphan } from './remove-orphan.ts';
import {
  addNetworkHandler,
  connectNetworkHandler,
  disconnectNetworkHandler,
  modifyNetworkHandler,
  removeNetworkHandler,
} from './networks.ts';
import { modifyProfileHandler, removeProfileHandler } from './profiles.ts';
import { removeInstanceHandler } from './remove-instance.ts';
import { renameInstanceHandler } from './rename-instance.ts';
import { removeSnapshotHandler, restoreSnapshotHandler, takeSnapshotHandler } from './snapshots.ts';
import { runScriptHandler } from './run-script.ts';
import { rebootInstanceHandler, startInstanceHandler, stopInstanceHandler } from './power.ts';
import { queryInstanceHandler } from './query-instance.ts';
import { destroyIsoHandler } from './destroy-iso.ts';
import { withSpaceWarning } from './with-space-warning.ts';
import { uploadIsoHandler } from './upload-iso.ts';
import { reinstallInstanceHandler } from './reinstall-instance.ts';

/** Every opcode has its handler: a missing one does not compile. */
export function createJobHandlers(dependencies: OperationDependencies): JobHandlers {
  const here = <Op extends InstanceOpcode>(handler: JobHandler<Op>): JobHandler<Op> =>
    onPrimaryNode(handler, dependencies);
  /**
   * What changes the cluster, and is about no instance that is there, is nothing for who left it.
   */
  const asMember = <Op extends Opcode>(handler: JobHandler<Op>): JobHandler<Op> => ({
    locks: (opcode) => handler.locks(opcode),
    prepare: async (opcode, signal) => {
      dependencies.membership.requireMember();
      await refuseOffline(dependencies);
      return handler.prepare(opcode, signal);
    },
  });
  return {
    INSTANCE_CREATE: withSpaceWarning(asMember(createInstanceHandler(dependencies)), dependencies),
    INSTANCE_REINSTALL: withSpaceWarning(
      here(reinstallInstanceHandler(dependencies)),
      dependencies,
    ),
    INSTANCE_SET_PARAMS: withSpaceWarning(here(modifyInstanceHandler(dependencies)), dependencies),
    INSTANCE_QUERY_DATA: here(queryInstanceHandler(dependencies)),
    INSTANCE_REMOVE: orRemoveOrphan(here(removeInstanceHandler(dependencies)), dependencies),
    INSTANCE_ADOPT: asMember(adoptInstanceHandler(dependencies)),
    INSTANCE_RENAME: here(renameInstanceHandler(dependencies)),
    INSTANCE_COPY: withSpaceWarning(here(copyInstanceHandler(dependencies)), dependencies),
    INSTANCE_MOVE: here(moveInstanceHandler(dependencies)),
    INSTANCE_MIGRATE: here(migrateInstanceHandler(dependencies)),
    INSTANCE_FAILOVER: asMember(failoverInstanceHandler(dependencies)),
    INSTANCE_STARTUP: here(startInstanceHandler(dependencies)),
    INSTANCE_SHUTDOWN: here(stopInstanceHandler(dependencies)),
    INSTANCE_REBOOT: here(rebootInstanceHandler(dependencies)),
    INSTANCE_GROW_DISK: withSpaceWarning(here(growDiskHandler(dependencies)), dependencies),
    INSTANCE_RUN_SCRIPT: here(runScriptHandler(dependencies)),
    INSTANCE_SNAPSHOT: withSpaceWarning(here(takeSnapshotHandler(dependencies)), dependencies),
    INSTANCE_RESTORE: withSpaceWarning(here(restoreSnapshotHandler(dependencies)), dependencies),
    INSTANCE_REMOVE_SNAPSHOT: here(removeSnapshotHandler(dependencies)),
    BACKUP_EXPORT: withSpaceWarning(here(exportInstanceHandler(dependencies)), dependencies),
    BACKUP_REMOVE: removeExportHandler(dependencies),
    OS_SET_PARAMS: asMember(modifyOsHandler(dependencies)),
    PROFILE_SET_PARAMS: asMember(modifyProfileHandler(dependencies)),
    PROFILE_REMOVE: asMember(removeProfileHandler(dependencies)),
    NETWORK_ADD: asMember(addNetworkHandler(dependencies)),
    NETWORK_SET_PARAMS: asMember(modifyNetworkHandler(dependencies)),
    NETWORK_CONNECT: asMember(connectNetworkHandler(dependencies)),
    NETWORK_DISCONNECT: asMember(disconnectNetworkHandler(dependencies)),
    NETWORK_REMOVE: asMember(removeNetworkHandler(dependencies)),
    BOOTENV_SET: asMember(setBootContentHandler(dependencies)),
    BOOTENV_UPLOAD_ISO: asMember(uploadIsoHandler(dependencies)),
    BOOTENV_DESTROY_ISO: destroyIsoHandler(dependencies),
    BOOTENV_REMOVE: asMember(removeBootObjectHandler(dependencies)),
    CLUSTER_SET_PARAMS: asMember(modifyClusterHandler(dependencies)),
    NODE_SET_PARAMS: modifyNodeHandler(dependencies),
  };
}

/** What takes the mark back is the one thing that such a node does. */
async function refuseOffline({ nodes, nodeName }: OperationDependencies): Promise<void> {
  requireOnline(nodeName, await nodes.flagsOf(nodeName));
}

type InstanceOpcode = Extract<Opcode, { readonly name: string }>;

/**
 * Lets only the node act that has the disks, machine and view of an instance: no other one may act
 * as if they were gone.
 */
function onPrimaryNode<Op extends InstanceOpcode>(
  handler: JobHandler<Op>,
  dependencies: OperationDependencies,
): JobHandler<Op> {
  const { instances, owns } = dependencies;
  return {
    locks: (opcode) => handler.locks(opcode),
    prepare: async (opcode, signal) => {
      await refuseOffline(dependencies);
      const { name, primaryNode } = await instances.findByName(opcode.name);
      if (owns(primaryNode)) return handler.prepare(opcode, signal);
      throw new AppError('CONFLICT', `instance '${name}' is on node ${primaryNode}`, {
        details: { node: primaryNode },
        hint: `Send the request to the node daemon of ${primaryNode}.`,
      });
    },
  };
}
