import type { OpcodeOf } from '#shared/contract/opcode.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { describeLostSecrets } from '#shared/contract/supply-secrets.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { bootEnvOfRun } from '../instances/view/boot-environment.ts';
import { type JobSecrets, noSecrets, takeSecrets } from '../instances/parameters/job-secrets.ts';
import type { JobContext, JobHandler } from '../jobs/job-handler.ts';
import {
  undecommissioned,
  undecommissionedReason,
} from '../instances/run-lists/script-refusals.ts';
import { checkGivenSecrets, nameSecrets } from './check-given-secrets.ts';
import { checkRunLists } from './check-run-lists.ts';
import { checkHostPathsOfRun } from './host-paths.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

export function startInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_STARTUP'>> {
  const { instances, clusters, runner, bootViews } = dependencies;
  return {
    prepare: async (opcode, signal) => {
      const instance = await instances.findByName(opcode.name);
      await checkGivenSecrets(instance, opcode, dependencies, signal);
      if (runner.isRunning(instance.uuid)) {
        refuseUnread(instance, opcode, dependencies);
        return async (context) => {
          context.report.log(`instance ${instance.name} is already running`);
          await supplySecrets(instance, opcode, dependencies, context);
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
        const secrets = takeSecrets(opcode);
        // Store the names before the guest has the values: a lost secret can then be named.
        const named = await nameInRecord(instance, secrets, instances);
        await runner.start(named, secrets, context);
        return { name: instance.name };
      };
    },
  };
}

/**
 * Refuses secrets that a running guest cannot read: it reads them over its channel only.
 * @throws AppError INSTANCE_STATE
 */
function refuseUnread(
  { name, uuid }: InstanceRecord,
  { osParametersSecret }: OpcodeOf<'INSTANCE_STARTUP'>,
  { runner }: Pick<OperationDependencies, 'runner'>,
): void {
  const names = Object.keys(osParametersSecret);
  if (names.length === 0 || runner.running(uuid)?.device != null) return;
  throw new AppError(
    'INSTANCE_STATE',
    `instance '${name}' runs without a channel, by which its guest could read ${names.join(', ')}`,
    { hint: `gnt-instance modify --communication yes ${name} && gnt-instance reboot ${name}` },
  );
}

/** Gives a running guest new secrets, or replaces lost ones. */
async function supplySecrets(
  instance: InstanceRecord,
  opcode: OpcodeOf<'INSTANCE_STARTUP'>,
  { instances, runner }: Pick<OperationDependencies, 'instances' | 'runner'>,
  { report }: JobContext,
): Promise<void> {
  const secrets = takeSecrets(opcode);
  const names = [...secrets.osParameters.keys()];
  if (names.length === 0) return;
  await runner.republish(await nameInRecord(instance, secrets, instances), secrets);
  report.log(`its guest can read these secrets now: ${names.join(', ')}`);
  const lost = runner.running(instance.uuid)?.lostSecrets ?? [];
  if (lost.length > 0) report.log(describeLostSecrets(instance.name, lost), 'warn');
}

function nameInRecord(
  { uuid }: InstanceRecord,
  { osParameters }: JobSecrets,
  instances: OperationDependencies['instances'],
): Promise<InstanceRecord> {
  return instances.update(uuid, (current) => nameSecrets(current, [...osParameters.keys()]));
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

export function stopInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_SHUTDOWN'>> {
  const { instances, runner } = dependencies;
  return {
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
    prepare: async (opcode, signal) => {
      const instance = await instances.findByName(opcode.name);
      if (runner.running(instance.uuid) === undefined) {
        throw new AppError('INSTANCE_STATE', `instance '${instance.name}' is not running`, {
          hint: `gnt-instance startup ${instance.name}`,
        });
      }
      // A restart opens the files again, which may have become forbidden or impossible.
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
