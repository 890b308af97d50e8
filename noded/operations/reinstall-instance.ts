import { randomUUID } from 'node:crypto';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { installTimeoutOf } from '#shared/contract/install-timeout.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError, tellableMessage } from '#shared/errors/app-error.ts';
import { type FormerDisks, requireRoomBeside } from '../storage/choose-disks.ts';
import { type JobSecrets, takeSecrets } from '../instances/parameters/job-secrets.ts';
import { missingSecrets, refuseMissingSecrets } from '../instances/parameters/needed-secrets.ts';
import { planReinstall, refuseDuplicateParameters } from '../instances/record/plan-record.ts';
import { describeUnread } from '../instances/record/unread-values.ts';
import { type JobContext, type JobHandler, withPreview } from '../jobs/job-handler.ts';
import { beginReinstall } from '../records/install-states.ts';
import { checkInstall } from './check-install.ts';
import { checkParameterNames } from './check-parameters-by-os.ts';
import { checkHostPaths } from './host-paths.ts';
import type { OperationDependencies } from './operation-dependencies.ts';
import { selectOs } from './os-policy.ts';
import { refuseUnknownProfiles } from './profiles.ts';
import { startAfter, startAgain } from './start-again.ts';

/**
 * Installs an instance again. All checks that do not need its disks come first, before it is
 * stopped or changed. Its parameters change in the commit that marks it as installed. Until then
 * the old disks stay (unless they are overwritten). A failure restores its record and disks, and
 * starts it again if it ran.
 */
export function reinstallInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_REINSTALL'>> {
  const { instances, clusters, installer, runner, disks, clock } = dependencies;
  return {
    prepare: async (opcode, signal) => {
      refuseDuplicateParameters(opcode);
      const current = await instances.findByName(opcode.name);
      if (runner.isRunning(current.uuid) && opcode.shutdownTimeoutS === undefined) {
        throw new AppError(
          'INSTANCE_STATE',
          `instance '${current.name}' is running and cannot be reinstalled`,
          {
            hint: `Stop it first (gnt-instance shutdown ${current.name}), or give --shutdown-timeout SECONDS.`,
          },
        );
      }
      const changes = planReinstall(current, opcode, randomUUID);
      const planned = { ...current, ...changes };
      // Before the check for missing secrets, which would ask for secrets that the new OS refuses.
      if (planned.osType !== null && opcode.osType !== undefined) {
        const forceVariant = opcode.forceVariant === true;
        const { os } = await selectOs(planned.osType, dependencies, { forceVariant });
        checkParameterNames(os, planned);
      }
      refuseMissingSecrets(
        `the reinstallation of '${current.name}' needs its secrets again`,
        missingSecrets(planned, opcode),
      );
      const secrets = takeSecrets(opcode);
      const timeoutS = installTimeoutOf(opcode, current, await clusters.load());
      const decision = await checkInstall(
        planned,
        {
          ...{ secrets: secrets.osParameters, signal, timeoutS, isReinstall: true },
          forceVariant: opcode.forceVariant,
        },
        dependencies,
      );
      if (opcode.keepOld === true) await requireRoomBeside(disks, planned, 0);
      await checkHostPaths(planned, clusters);
      await refuseUnknownProfiles(opcode.profiles ?? [], clusters);
      await dependencies.bootViews.check(planned, secrets, signal);
      await runner.checkInstallable(planned);
      return withPreview({ hooks: decision.hookBook }, async (context) => {
        const unread = describeUnread(planned, opcode);
        if (unread !== null) context.report.log(unread, 'warn');
        const wasRunning = runner.isRunning(current.uuid);
        const { isFromMedium, appliance } = decision;
        const machine = { isFromMedium, appliance, runsUntilThen: wasRunning };
        using place = await installer.reserve(planned, machine, context);
        // If an earlier reinstallation failed to take over its disks, they count as the old disks
        // now.
        await disks.settle(current);
        const begun = await instances.update(current.uuid, (instance) =>
          beginReinstall(instance, context.jobId, clock.now()),
        );
        const run = { wasRunning, isToldToStop: false };
        const enter = async (): Promise<void> => {
          run.isToldToStop = true;
          // Stop the instance first: the reservation may be waiting for its memory.
          if (opcode.shutdownTimeoutS !== undefined)
            await runner.stop(current, opcode.shutdownTimeoutS, context, 'interlude');
          await place.enter();
        };
        try {
          const installed = await installer.install(
            {
              instance: { ...begun, ...changes },
              ...{ changes, formerDisks: chooseFormerDisks(begun, opcode) },
              giveUpFormerDisks: async () => {
                await instances.update(current.uuid, (instance) => ({
                  ...instance,
                  beforeReinstall: null,
                }));
              },
              ...decision,
              secrets,
              isReinstall: true,
              dumps: null,
              place: { enter, [Symbol.dispose]: () => undefined },
              timeoutS,
            },
            context,
          );
          if (opcode.start) {
            const start = (): Promise<void> => runner.start(installed, secrets, context);
            await startAfter('the new system is installed', current.name, start, context.signal);
          }
          const stages = installed.install?.stages ?? [];
          return { name: installed.name, uuid: installed.uuid, stages };
        } catch (error) {
          await goBack(current.uuid, { ...run, secrets }, dependencies, context);
          throw error;
        }
      });
    },
  };
}

/**
 * Keeps the old disks if there is room, by default. After a failed installation they hold nothing
 * of value.
 */
function chooseFormerDisks(
  { beforeReinstall }: InstanceRecord,
  { keepOld }: OpcodeOf<'INSTANCE_REINSTALL'>,
): FormerDisks {
  if (keepOld !== undefined) return keepOld ? 'keep' : 'overwrite';
  return beforeReinstall?.installState === 'failed' ? 'worthless' : 'keep-if-room';
}

interface Run {
  readonly wasRunning: boolean;
  readonly isToldToStop: boolean;
  /** Secrets given to the job. */
  readonly secrets: JobSecrets;
}

/** After a failure: reports the state of the instance, and starts it again if it ran and can. */
async function goBack(
  uuid: string,
  { wasRunning, isToldToStop, secrets }: Run,
  dependencies: OperationDependencies,
  context: JobContext,
): Promise<void> {
  const { report } = context;
  try {
    const instance = await dependencies.instances.findByUuid(uuid);
    if (instance === undefined || instance.install?.jobId === context.jobId) return;
    report.log(`instance ${instance.name} is unchanged: its disks and its record are as before`);
    if (wasRunning && isToldToStop && instance.adminState === 'up')
      await startAgain(uuid, secrets, dependencies, context);
  } catch (error) {
    report.log(`it could not be started again: ${tellableMessage(error)}`, 'warn');
  }
}
