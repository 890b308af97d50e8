import { randomUUID } from 'node:crypto';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { beginInstall } from '../install/begin-install.ts';
import { takeSecrets } from '../instances/job-secrets.ts';
import { missingSecrets, refuseMissingSecrets } from '../instances/needed-secrets.ts';
import { planReinstall, refuseDuplicateParameters } from '../instances/plan-record.ts';
import type { JobHandler } from '../jobs/job-handler.ts';
import { checkInstall } from './check-install.ts';
import { checkHostPaths } from './host-paths.ts';
import { instanceLock, type OperationDependencies } from './operation-dependencies.ts';

export function reinstallInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_REINSTALL'>> {
  const { instances, clusters, installer, runner, clock } = dependencies;
  return {
    locks: (opcode) => [instanceLock(opcode.name)],
    prepare: async (opcode, signal) => {
      refuseDuplicateParameters(opcode);
      const current = await instances.findByName(opcode.name);
      if (runner.isRunning(current.uuid) && opcode.shutdownTimeoutS === undefined) {
        throw new AppError(
          'INSTANCE_STATE',
          `instance '${current.name}' is running, cannot reinstall it`,
          {
            hint: `gnt-instance shutdown ${current.name} first`,
          },
        );
      }
      const planned = planReinstall(current, opcode, randomUUID);
      refuseMissingSecrets(
        `the reinstallation of '${current.name}' needs secrets again`,
        missingSecrets(planned, opcode),
      );
      const secrets = takeSecrets(opcode);
      const decision = await checkInstall(
        planned,
        { secrets: secrets.osParameters, signal },
        dependencies,
      );
      await checkHostPaths(planned, clusters);
      await runner.checkRunnable(planned);
      const { installTimeoutS } = await clusters.load();
      return async (context) => {
        // First, since its memory may be the room that is waited for.
        if (opcode.shutdownTimeoutS !== undefined)
          await runner.stop(current, opcode.shutdownTimeoutS, context);
        using place = await installer.reserve(planned, decision.isFromMedium, context);
        const updated = await instances.update(current.uuid, (instance) => ({
          ...planReinstall(instance, opcode, randomUUID),
          // Drawn once: the stored record gets the very instance id that was planned.
          instanceId: planned.instanceId,
          ...beginInstall(context.jobId, clock.now()),
        }));
        const installed = await installer.install(
          {
            instance: updated,
            ...decision,
            secrets,
            isReinstall: true,
            dumps: null,
            place,
            timeoutS: installTimeoutS,
          },
          context,
        );
        if (opcode.start) await runner.start(installed, secrets, context);
        return { name: updated.name, uuid: updated.uuid, stages: installed.install?.stages ?? [] };
      };
    },
  };
}
