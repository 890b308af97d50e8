import { randomUUID } from 'node:crypto';
import { installTimeoutOf } from '#shared/contract/install-timeout.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { requireTakesNew } from '#shared/contract/node-flags.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { removeLogs } from '../host/install-log.ts';
import { completeFromExport } from '../instances/backup/plan-import.ts';
import { drawMacs } from '../records/channel-addresses.ts';
import type { NewInstance } from '../records/instance-repository.ts';
import { beginInstall } from '../records/install-states.ts';
import { warnOfUnheard } from '../instances/view/cloud-init-datasource.ts';
import { withDefaultOs } from '../instances/record/default-os.ts';
import { takeSecrets } from '../instances/parameters/job-secrets.ts';
import { missingLogin, refuseMissingSecrets } from '../instances/parameters/needed-secrets.ts';
import { planNewInstance, refuseDuplicateParameters } from '../instances/record/plan-record.ts';
import { describeUnreached, describeUnread } from '../instances/record/unread-values.ts';
import { bothFailures } from '../jobs/both-failures.ts';
import { joinHints } from '../jobs/join-hints.ts';
import { type JobContext, type JobHandler, withPreview } from '../jobs/job-handler.ts';
import { StageFailure } from '../jobs/stage-failure.ts';
import { checkInstall } from './check-install.ts';
import { checkRunLists } from './check-run-lists.ts';
import { checkHostPaths } from './host-paths.ts';
import { prepareImportWhole } from './import-whole.ts';
import { refuseOversized } from '../instances/view/refuse-oversized.ts';
import { refuseUnknownProfiles } from './profiles.ts';
import { startAfter } from './start-again.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

export function createInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_CREATE'>> {
  const { instances, clusters, nodes, nodeName, disks } = dependencies;
  const { installer, runner, exports, clock } = dependencies;
  return {
    prepare: async (given, signal) => {
      const imported = given.importFrom === undefined ? null : await exports.load(given.importFrom);
      requireTakesNew(nodeName, await nodes.flagsOf(nodeName));
      await refuseTakenName(given.name, dependencies);
      if (given.node !== undefined && given.node !== nodeName) {
        throw new AppError('NODE_NOT_FOUND', `there is no node '${given.node}'`, {
          hint: `The node of this cluster is ${nodeName}.`,
        });
      }
      if (imported !== null && imported.record.whole !== null)
        return prepareImportWhole(given, imported, imported.record.whole, dependencies);
      const cluster = await clusters.load();
      const opcode =
        imported === null
          ? withDefaultOs(given, cluster.defaultOs)
          : completeFromExport(given, imported);
      refuseDuplicateParameters(opcode);
      const planned = planNewInstance(opcode, {
        nodeName,
        newUuid: randomUUID,
        newMac: drawMacs(await clusters.listNetworks()),
        ...{ vgName: cluster.vgName, zfsPool: cluster.zfsPool },
      });
      refuseOversized(planned.beparams);
      refuseMissingSecrets(
        `the login for the package of '${opcode.name}' needs both user and password`,
        {
          osParameters: [],
          ...missingLogin(false, opcode),
        },
      );
      const secrets = takeSecrets(opcode);
      const timeoutS = installTimeoutOf(opcode, planned, cluster);
      const decision = await checkInstall(
        planned,
        {
          ...{ secrets: secrets.osParameters, signal, timeoutS, isReinstall: false },
          ...{ isImport: imported !== null, forceVariant: opcode.forceVariant },
        },
        dependencies,
      );
      await disks.checkSizes(planned.disks, planned);
      await checkHostPaths(planned, clusters);
      await checkRunLists(planned, dependencies);
      await refuseUnknownProfiles(planned.profiles, clusters);
      await dependencies.bootViews.check(planned, secrets, signal);
      await runner.checkInstallable(planned);
      return withPreview({ hooks: decision.hookBook }, async (context) => {
        // Pin the checked files: their paths may lead elsewhere by now.
        await using pinned = imported === null ? null : await imported.pin();
        using held = new DisposableStack();
        const { isFromMedium, appliance } = decision;
        const machine = { isFromMedium, appliance, runsUntilThen: false };
        const place = opcode.install
          ? held.use(await installer.reserve(planned, machine, context))
          : null;
        // From here on the record says "installing": if the daemon ends, the instance must not look
        // startable.
        const created = await instances.create(
          { ...planned, ...(opcode.install && beginInstall(context.jobId, clock.now())) },
          { drawnMacs: drawnMacs(planned, opcode) },
        );
        for (const warning of warnOfUnheard(created)) context.report.log(warning, 'warn');
        const unread = describeUnread(created, opcode);
        if (unread !== null) context.report.log(unread, 'warn');
        context.report.log(
          `instance ${created.name} has the channel address ${created.channel.ip}`,
        );
        const unreached = describeUnreached(created);
        if (unread === null && unreached !== null) context.report.log(unreached);
        if (place === null) {
          context.report.log('No-installation mode selected, disabling startup');
          try {
            await disks.createEmpty(created);
          } catch (error) {
            await disks.remove(created);
            await instances.remove(created.uuid);
            throw error;
          }
          return { name: created.name, uuid: created.uuid };
        }
        const request = {
          instance: created,
          changes: undefined,
          formerDisks: 'worthless',
          giveUpFormerDisks: () => Promise.resolve(),
          ...decision,
          secrets,
          isReinstall: false,
          dumps: pinned?.dumps ?? null,
          place,
          timeoutS,
        } as const;
        const installed = await installer
          .install(request, context)
          .catch(async (error: unknown) => {
            if (opcode.onFailure !== 'remove') throw tellWhatStays(error, created);
            throw await removeFailed(error, created, dependencies, context);
          });
        if (opcode.start) {
          const start = (): Promise<void> => runner.start(installed, secrets, context);
          await startAfter('the system is installed', created.name, start, context.signal);
        }
        return { name: created.name, uuid: created.uuid, stages: installed.install?.stages ?? [] };
      });
    },
  };
}

/** Returns the MACs that were drawn here, of NICs without a given MAC. */
function drawnMacs(
  { nics }: Pick<NewInstance, 'nics'>,
  opcode: OpcodeOf<'INSTANCE_CREATE'>,
): ReadonlySet<string> {
  const drawn = nics.filter((_, index) => opcode.nics[index]?.mac === 'auto');
  return new Set(drawn.map(({ mac }) => mac));
}

/** @returns the error to throw */
async function removeFailed(
  error: unknown,
  created: InstanceRecord,
  { disks, instances, logDir }: OperationDependencies,
  context: JobContext,
): Promise<unknown> {
  const { name, uuid } = created;
  try {
    await disks.remove(created);
    await instances.remove(uuid);
    await removeLogs(logDir, uuid);
  } catch (also) {
    const what = `${name} could not be removed`;
    return bothFailures(error, {
      what,
      error: also,
      hint: `Remove it: gnt-instance remove ${name}`,
    });
  }
  context.report.log(`${name} was removed completely`);
  return error;
}

/** Adds a hint to the error: the record stays with its settings, but without the secrets. */
function tellWhatStays(error: unknown, { name }: InstanceRecord): unknown {
  if (!(error instanceof StageFailure)) return error;
  const { code, message, stage, logTail, details, hint } = error;
  const next = `${name} is kept, but not installed. Try again with gnt-instance reinstall ${name}, or remove it with gnt-instance remove ${name}`;
  return new StageFailure(code, message, {
    ...{ stage, logTail, details, cause: error },
    hint: joinHints(hint, next),
  });
}

async function refuseTakenName(name: string, dependencies: OperationDependencies): Promise<void> {
  let found: InstanceRecord;
  try {
    found = await dependencies.instances.findByName(name);
  } catch (error) {
    if (isAppError(error, 'INSTANCE_NOT_FOUND')) return;
    throw error;
  }
  const hasFailed = found.installState === 'failed';
  throw new AppError('INSTANCE_EXISTS', `an instance '${name}' exists already`, {
    details: { name },
    hint: hasFailed
      ? `Its installation failed. Try again with gnt-instance reinstall ${name}, or remove it with gnt-instance remove ${name}`
      : `Choose another name, or remove it: gnt-instance remove ${name}`,
  });
}
