import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { loadInstanceInfo } from '../instances/instance-info.ts';
import type { JobHandler } from '../jobs/job-handler.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

export function queryInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_QUERY_DATA'>> {
  return {
    prepare: async (opcode) => {
      const instance = await dependencies.instances.findByName(opcode.name);
      return () => loadInstanceInfo(instance, dependencies);
    },
  };
}
