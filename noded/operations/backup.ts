import { LOCAL_BOOT_ENV } from '#shared/contract/boot-objects.ts';
import { installTimeoutOf } from '#shared/contract/install-timeout.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import {
  type DumpFile,
  dumpFileOf,
  type UnfinishedExport,
} from '../instances/backup/export-store.ts';
import { describeInstance } from '../instances/backup/describe-export.ts';
import type { ExportRecord } from '../instances/backup/export-record.ts';
import { hasHelper, requireHelper } from '../provision/os/choose-scripts.ts';
import type { ScriptRequest } from '../provision/install/run-helper-script.ts';
import { loadAppliance } from '../instances/record/choose-appliance.ts';
import { noSecrets } from '../instances/parameters/job-secrets.ts';
import { loadParameters } from '../instances/parameters/load-parameters.ts';
import { bothFailures } from '../jobs/both-failures.ts';
import type { JobContext, JobHandler } from '../jobs/job-handler.ts';
import { refuseUnfinished } from './copy-instance.ts';
import { dumpWhole } from './dump-whole.ts';
import { checkHostPathsOfRun } from './host-paths.ts';
import type { OperationDependencies } from './operation-dependencies.ts';
import { requireAppliance } from './require-appliance.ts';
import { selectOs } from './os-policy.ts';
import { startAfter, startAgain } from './start-again.ts';

/**
 * Bytes that a dump may have beyond twice its disk: an archive of many small files is larger than
 * the files.
 */
const DUMP_SPARE_BYTES = 64 * MIB;

export function exportInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'BACKUP_EXPORT'>> {
  const { instances, runner, exports } = dependencies;
  return {
    prepare: async (opcode) => {
      const instance = await instances.findByName(opcode.name);
      const script = await chooseExport(instance, opcode, dependencies);
      await dependencies.disks.checkSpace();
      await runner.checkDisksUnused(instance);
      // The instance is started again after the export.
      if (runner.isRunning(instance.uuid))
        await checkHostPathsOfRun(instance, dependencies.clusters);
      return async (context) => {
        const wasRunning = runner.isRunning(instance.uuid);
        const restart = async (): Promise<void> => {
          if (wasRunning) await startAgain(instance.uuid, noSecrets, dependencies, context);
        };
        return thenRestart(instance.name, restart, context.signal, async () => {
          if (wasRunning)
            await runner.stop(instance, opcode.shutdownTimeoutS, context, 'interlude');
          await using unfinished = await exports.begin(instance.name);
          const { record, sizeBytes } = await (script === null
            ? dumpWhole(instance, unfinished, dependencies, context)
            : dump(instance, script, unfinished, dependencies, context));
          context.report.log(`${instance.disks.length} dump(s), ${sizeBytes} bytes`);
          tellWhatIsMissing(instance, context);
          const path = await unfinished.finish(record);
          return { name: instance.name, path, sizeBytes };
        });
      };
    },
  };
}

export function removeExportHandler({
  exports,
}: OperationDependencies): JobHandler<OpcodeOf<'BACKUP_REMOVE'>> {
  return {
    prepare: async ({ name }) => {
      await exports.check(name);
      return async () => {
        await exports.remove(name);
        return { name };
      };
    },
  };
}

type ExportScript = Pick<ScriptRequest, 'os' | 'script' | 'appliance' | 'parameters' | 'timeoutS'>;

/** Returns the export script that makes the dumps; null if the disks are dumped as they are. */
async function chooseExport(
  instance: InstanceRecord,
  opcode: OpcodeOf<'BACKUP_EXPORT'>,
  dependencies: OperationDependencies,
): Promise<ExportScript | null> {
  const { clusters } = dependencies;
  const { name, osType, installState } = instance;
  // The system is installed with its variant, even if the definition no longer lists it.
  const selected = osType && (await selectOs(osType, dependencies, { forceVariant: true }));
  if (!selected || !hasHelper(selected.os.definition, 'export')) {
    refuseUnfinished(instance);
    return null;
  }
  const { os, policy } = selected;
  if (installState !== 'installed') {
    throw new AppError(
      'INSTANCE_STATE',
      `instance '${name}' is not installed (${installState}) and cannot be exported`,
      {
        hint: `gnt-instance reinstall ${name}`,
      },
    );
  }
  const script = requireHelper(os.definition, 'export', policy);
  const appliance = await loadAppliance(instance, clusters);
  if ('appliance' in script) await requireAppliance(appliance, dependencies);
  return {
    os,
    script,
    appliance: appliance.name,
    parameters: await loadParameters(instance, clusters),
    timeoutS: installTimeoutOf(opcode, instance, await clusters.load()),
  };
}

async function dump(
  instance: InstanceRecord,
  script: ExportScript,
  unfinished: UnfinishedExport,
  { installer, nodeName, clock }: OperationDependencies,
  context: JobContext,
): Promise<{ record: ExportRecord; sizeBytes: number }> {
  const inAppliance = 'appliance' in script.script;
  const dumps: DumpFile[] = [];
  for (const [disk, { sizeBytes }] of instance.disks.entries()) {
    const mayHave = 2 * sizeBytes + DUMP_SPARE_BYTES;
    const path = await unfinished.createDump(disk, inAppliance ? mayHave : 0);
    dumps.push({ disk, path, sizeBytes: mayHave });
  }
  using held = new DisposableStack();
  if (inAppliance)
    held.use(
      await installer.enterRoom(
        instance,
        { isFromMedium: false, appliance: script.appliance },
        context,
      ),
    );
  const sizes = await installer.runScript(
    { instance, ...script, operation: { script: 'export', diskIndex: 0 }, dumps },
    context,
  );
  for (const [index, { disk }] of dumps.entries())
    await unfinished.cutDump(disk, sizes[index] ?? 0);
  const sizeBytes = sizes.reduce((sum, size) => sum + size, 0);
  const about = { node: nodeName, createdAtMs: clock.now(), dumpOf: dumpFileOf };
  return { record: { ...describeInstance(instance, about), whole: null }, sizeBytes };
}

function tellWhatIsMissing({ bootEnv, profiles }: InstanceRecord, context: JobContext): void {
  if (profiles.length > 0) {
    context.report.log(
      `the export holds the names of profiles, which must exist where it is imported: ${profiles.join(', ')}`,
    );
  }
  if (bootEnv !== null && bootEnv !== LOCAL_BOOT_ENV) {
    context.report.log(
      `the export does not hold the boot environment '${bootEnv}': set it after the import with gnt-instance modify --bootenv ${bootEnv}`,
      'warn',
    );
  }
}

/** Runs `restart` whether the work succeeds or fails. */
async function thenRestart<T>(
  name: string,
  restart: () => Promise<void>,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const hint = `Start it: gnt-instance startup ${name}`;
  let result: T;
  try {
    result = await work();
  } catch (failure) {
    try {
      await restart();
    } catch (error) {
      const what = `'${name}' was stopped for the export and did not start again`;
      throw bothFailures(failure, { what, error, hint });
    }
    throw failure;
  }
  await startAfter('the export is complete', name, restart, signal);
  return result;
}
