import type { OpcodeOf } from '#shared/contract/opcode.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { bootEnvOfRun } from '../instances/boot-environment.ts';
import { noSecrets, takeSecrets } from '../instances/job-secrets.ts';
import type { JobContext, JobHandler } from '../jobs/job-handler.ts';
import { undecommissioned, undecommissionedReason } from '../lifecycle/script-refusals.ts';
import { checkRunLists } from './check-run-lists.ts';
import { checkHostPathsOfRun } from './host-paths.ts';
import { instanceLock, type OperationDependencies } from './operation-dependencies.ts';

export function startInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_STARTUP'>> {
  const { instances, clusters, runner, bootViews } = dependencies;
  return {
    locks: (opcode) => [instanceLock(opcode.name)],
    prepare: async (opcode, signal) => {
      const instance = await instances.findByName(opcode.name);
      if (runner.isRunning(instance.uuid)) {
        return async (context) => {
          context.report.log(`instance ${instance.name} is already running`);
          return { name: instance.name };
        };
      }
      refuseHalfInstalled(instance);
      await checkHostPathsOfRun(instance, clusters);
      await runner.checkRunnable(instance);
      if (bootEnvOfRun(instance) !== null)
        await bootViews.check(instance, takeSecrets(opcode), signal);
      await checkRunLists(instance, dependencies);
      return async (context) => {
        tellLostSecrets(instance, opcode, context);
        const secrets = takeSecrets(opcode);
        // The names are stored before the guest has the values: whoever loses those can say which.
        const named = await instances.update(instance.uuid, (current) =>
          nameSecrets(current, [...secrets.osParameters.keys()]),
        );
        await runner.start(named, secrets, context);
        return { name: instance.name };
      };
    },
  };
}

/**
 * The record knows secrets by their names alone, which later views of this run, and of the next
 * ones, are made with. What has a value there keeps it: a secret takes its place for one run. Pure.
 */
export function nameSecrets(instance: InstanceRecord, given: readonly string[]): InstanceRecord {
  const { osParameters, osParametersPrivate, secretNames } = instance;
  const known = [...secretNames, ...Object.keys({ ...osParameters, ...osParametersPrivate })];
  const unknown = given.filter((name) => !known.includes(name));
  return unknown.length === 0
    ? instance
    : { ...instance, secretNames: [...secretNames, ...unknown].sort() };
}

function refuseHalfInstalled(instance: InstanceRecord): void {
  if (instance.installState === 'installed' || instance.installState === 'created') return;
  throw new AppError(
    'INSTANCE_STATE',
    `instance '${instance.name}' is not installed (${instance.installState}) and cannot be started`,
    {
      hint: `Install it: gnt-instance reinstall ${instance.name}. Show the failure: gnt-instance info ${instance.name}`,
    },
  );
}

/** Tells of secrets that nobody has kept: in their place the guest gets 410. */
function tellLostSecrets(
  { secretNames, communication }: InstanceRecord,
  { osParametersSecret }: OpcodeOf<'INSTANCE_STARTUP'>,
  { report }: JobContext,
): void {
  const lost = secretNames.filter((name) => !Object.hasOwn(osParametersSecret, name));
  if (!communication || lost.length === 0) return;
  report.log(
    `its channel has lost the secrets ${lost.join(', ')}. Supply them again: gnt-instance modify --os-parameters-secret NAME=@FILE`,
    'warn',
  );
}

export function stopInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_SHUTDOWN'>> {
  const { instances, runner } = dependencies;
  return {
    locks: (opcode) => [instanceLock(opcode.name)],
    prepare: async (opcode) => {
      const instance = await instances.findByName(opcode.name);
      await runner.checkDisksUnused(instance);
      return async (context) => {
        const hasRun = runner.running(instance.uuid) !== undefined;
        await runner.stop(instance, opcode.timeoutS, context);
        const reason = hasRun ? undecommissionedReason(instance, dependencies.lifecycles) : null;
        if (reason !== null) throw undecommissioned(instance.name, 'was powered off', reason);
        return { name: instance.name };
      };
    },
  };
}

export function rebootInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_REBOOT'>> {
  const { instances, clusters, runner, bootViews } = dependencies;
  return {
    locks: (opcode) => [instanceLock(opcode.name)],
    prepare: async (opcode, signal) => {
      const instance = await instances.findByName(opcode.name);
      if (runner.running(instance.uuid) === undefined) {
        throw new AppError('INSTANCE_STATE', `instance '${instance.name}' is not running`, {
          hint: `gnt-instance startup ${instance.name}`,
        });
      }
      // Its files are opened anew, which may not be allowed, or not possible, any more.
      if (opcode.kind !== 'hard') {
        await checkHostPathsOfRun(instance, clusters);
        await runner.checkRunnable(instance);
        if (bootEnvOfRun(instance) !== null) await bootViews.check(instance, noSecrets, signal);
        await checkRunLists(instance, dependencies);
      }
      return async (context) => {
        if (opcode.kind === 'hard') {
          await runner.reset(instance);
        } else {
          const reason = await runner.reboot(instance, opcode.timeoutS, context, opcode.kind);
          if (reason !== null) throw undecommissioned(instance.name, 'was rebooted', reason);
        }
        return { name: instance.name };
      };
    },
  };
}
