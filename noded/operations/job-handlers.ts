import type { Opcode } from '#shared/contract/opcode.ts';
import { requireOnline } from '#shared/contract/node-flags.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { JobHandler, JobHandlers } from '../jobs/job-handler.ts';
import { namesInstance, traitsOf } from '../jobs/opcode-traits.ts';
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
import { testDelayHandler } from './test-delay.ts';
import { withSpaceWarning } from './with-space-warning.ts';
import { uploadIsoHandler } from './upload-iso.ts';
import { reinstallInstanceHandler } from './reinstall-instance.ts';

/** Returns a handler for every opcode: a missing handler does not compile. */
export function createJobHandlers(dependencies: OperationDependencies): JobHandlers {
  const handlers: JobHandlers = {
    INSTANCE_CREATE: createInstanceHandler(dependencies),
    INSTANCE_REINSTALL: reinstallInstanceHandler(dependencies),
    INSTANCE_SET_PARAMS: modifyInstanceHandler(dependencies),
    INSTANCE_QUERY_DATA: queryInstanceHandler(dependencies),
    INSTANCE_REMOVE: removeInstanceHandler(dependencies),
    INSTANCE_ADOPT: adoptInstanceHandler(dependencies),
    INSTANCE_RENAME: renameInstanceHandler(dependencies),
    INSTANCE_COPY: copyInstanceHandler(dependencies),
    INSTANCE_MOVE: moveInstanceHandler(dependencies),
    INSTANCE_MIGRATE: migrateInstanceHandler(dependencies),
    INSTANCE_FAILOVER: failoverInstanceHandler(dependencies),
    INSTANCE_STARTUP: startInstanceHandler(dependencies),
    INSTANCE_SHUTDOWN: stopInstanceHandler(dependencies),
    INSTANCE_REBOOT: rebootInstanceHandler(dependencies),
    INSTANCE_GROW_DISK: growDiskHandler(dependencies),
    INSTANCE_RUN_SCRIPT: runScriptHandler(dependencies),
    INSTANCE_SNAPSHOT: takeSnapshotHandler(dependencies),
    INSTANCE_RESTORE: restoreSnapshotHandler(dependencies),
    INSTANCE_REMOVE_SNAPSHOT: removeSnapshotHandler(dependencies),
    BACKUP_EXPORT: exportInstanceHandler(dependencies),
    BACKUP_REMOVE: removeExportHandler(dependencies),
    OS_SET_PARAMS: modifyOsHandler(dependencies),
    PROFILE_SET_PARAMS: modifyProfileHandler(dependencies),
    PROFILE_REMOVE: removeProfileHandler(dependencies),
    NETWORK_ADD: addNetworkHandler(dependencies),
    NETWORK_SET_PARAMS: modifyNetworkHandler(dependencies),
    NETWORK_CONNECT: connectNetworkHandler(dependencies),
    NETWORK_DISCONNECT: disconnectNetworkHandler(dependencies),
    NETWORK_REMOVE: removeNetworkHandler(dependencies),
    BOOTENV_SET: setBootContentHandler(dependencies),
    BOOTENV_UPLOAD_ISO: uploadIsoHandler(dependencies),
    BOOTENV_DESTROY_ISO: destroyIsoHandler(dependencies),
    BOOTENV_REMOVE: removeBootObjectHandler(dependencies),
    CLUSTER_SET_PARAMS: modifyClusterHandler(dependencies),
    NODE_SET_PARAMS: modifyNodeHandler(dependencies),
    TEST_DELAY: testDelayHandler(),
  };
  const guarded = Object.entries<JobHandler<Opcode>>(handlers).map(([name, handler]) => [
    name,
    guardHandler(handler, dependencies),
  ]);
  // The same names as in `handlers`, each with the handler of the same opcode.
  const all = Object.fromEntries(guarded) as JobHandlers;
  return { ...all, INSTANCE_REMOVE: orRemoveOrphan(all.INSTANCE_REMOVE, dependencies) };
}

/**
 * Adds the behaviour that the traits of an opcode ask for: a check of the node, a warning of low
 * space.
 */
function guardHandler(
  handler: JobHandler<Opcode>,
  dependencies: OperationDependencies,
): JobHandler<Opcode> {
  return {
    prepare: async (opcode, signal) => {
      await requireNode(opcode, dependencies);
      const execution = await handler.prepare(opcode, signal);
      const takesSpace = traitsOf(opcode).takesSpace?.(opcode) === true;
      return takesSpace ? withSpaceWarning(execution, dependencies) : execution;
    },
  };
}

/**
 * Refuses an operation that this node does not run. Only the instance's own node has its disks,
 * QEMU process and view. Any other node would act as if they were gone.
 * @throws AppError CONFLICT, INSTANCE_NOT_FOUND, NODE_OFFLINE
 */
async function requireNode(opcode: Opcode, dependencies: OperationDependencies): Promise<void> {
  const { runsOn } = traitsOf(opcode);
  if (runsOn === 'any-node') return;
  if (runsOn === 'member') dependencies.membership.requireMember();
  const { nodes, nodeName, instances, owns } = dependencies;
  requireOnline(nodeName, await nodes.flagsOf(nodeName));
  if (runsOn === 'member' || !namesInstance(opcode)) return;
  const { name, primaryNode } = await instances.findByName(opcode.name);
  if (owns(primaryNode)) return;
  throw new AppError('CONFLICT', `instance '${name}' is on node ${primaryNode}`, {
    details: { node: primaryNode },
    hint: `Send the request to the node daemon of ${primaryNode}.`,
  });
}
