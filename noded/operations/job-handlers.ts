import type { JobHandlers } from '../jobs/job-handler.ts';
import { modifyClusterHandler, modifyOsHandler } from './change-cluster.ts';
import {
  modifyInstanceHandler,
  removeInstanceHandler,
  renameInstanceHandler,
} from './change-instance.ts';
import { createInstanceHandler } from './create-instance.ts';
import type { OperationDependencies } from './operation-dependencies.ts';
import { rebootInstanceHandler, startInstanceHandler, stopInstanceHandler } from './power.ts';
import { queryInstanceHandler } from './query-instance.ts';
import { reinstallInstanceHandler } from './reinstall-instance.ts';

/** Every opcode has its handler: a missing one does not compile. */
export function createJobHandlers(dependencies: OperationDependencies): JobHandlers {
  return {
    INSTANCE_CREATE: createInstanceHandler(dependencies),
    INSTANCE_REINSTALL: reinstallInstanceHandler(dependencies),
    INSTANCE_SET_PARAMS: modifyInstanceHandler(dependencies),
    INSTANCE_QUERY_DATA: queryInstanceHandler(dependencies),
    INSTANCE_REMOVE: removeInstanceHandler(dependencies),
    INSTANCE_RENAME: renameInstanceHandler(dependencies),
    INSTANCE_STARTUP: startInstanceHandler(dependencies),
    INSTANCE_SHUTDOWN: stopInstanceHandler(dependencies),
    INSTANCE_REBOOT: rebootInstanceHandler(dependencies),
    OS_SET_PARAMS: modifyOsHandler(dependencies),
    CLUSTER_SET_PARAMS: modifyClusterHandler(dependencies),
  };
}
