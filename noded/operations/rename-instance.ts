import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import type { JobHandler } from '../jobs/job-handler.ts';
import type { OperationDependencies } from './operation-dependencies.ts';
import { runRenameScript } from './run-rename-script.ts';

export function renameInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_RENAME'>> {
  const { instances, runner } = dependencies;
  return {
    prepare: async (opcode) => {
      const instance = await instances.findByName(opcode.name);
      if (runner.isRunning(instance.uuid)) {
        throw new AppError(
          'INSTANCE_STATE',
          `instance '${instance.name}' is running and cannot be renamed`,
          {
            hint: `Stop it first: gnt-instance shutdown ${instance.name}`,
          },
        );
      }
      await runner.checkDisksUnused(instance);
      await refuseTaken(opcode.newName, instances);
      return async (context) => {
        const renamed = await instances.rename(instance.uuid, opcode.newName);
        await runRenameScript(
          renamed,
          { ...opcode, oldName: instance.name },
          dependencies,
          context,
        );
        return { name: renamed.name };
      };
    },
  };
}

/** @throws AppError INSTANCE_EXISTS */
export async function refuseTaken(
  name: string,
  instances: OperationDependencies['instances'],
): Promise<void> {
  try {
    await instances.findByName(name);
  } catch (error) {
    if (isAppError(error, 'INSTANCE_NOT_FOUND')) return;
    throw error;
  }
  throw new AppError('INSTANCE_EXISTS', `an instance '${name}' exists already`, {
    hint: 'Choose another name. List the instances: gnt-instance list',
  });
}
