import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { createMask } from '#shared/secret/mask.ts';
import type { DumpFile } from '../../instances/backup/export-store.ts';
import {
  listHiddenValues,
  type OsParameters,
  withoutLostSecrets,
} from '../../instances/parameters/os-parameters.ts';
import type { JobContext } from '../../jobs/job-handler.ts';
import type { OsSelection } from '../os/os-registry.ts';
import type { ScriptOperation } from '../os/script-environment.ts';
import { runAppliance } from './appliance-session.ts';
import type { ChosenHelper, HostScript } from '../os/choose-scripts.ts';
import { exportDumps, runInstanceScript } from '../os/instance-script.ts';
import { inStage } from '../../jobs/in-stage.ts';
import { buildInstallContent } from './install-content.ts';
import { InstallLog, scriptLogPath } from '../../host/install-log.ts';
import type { InstallerDependencies } from './install-request.ts';
import { dumpSerial } from '../../storage/disk-serials.ts';
import { StageRecorder } from '../../jobs/stage-recorder.ts';

/** A script for an installed instance that is down. */
export interface ScriptRequest {
  readonly instance: InstanceRecord;
  readonly os: OsSelection;
  readonly script: ChosenHelper;
  /** Appliance for a script that does not run on the host. */
  readonly appliance: string;
  readonly operation: ScriptOperation;
  readonly parameters: OsParameters;
  /** Files for `export` to write. */
  readonly dumps: readonly DumpFile[];
  /** Limit in seconds; 0 means no limit. */
  readonly timeoutS: number;
}

/**
 * Runs `export` or `rename` of an OS definition, on the host or in the appliance. Secrets are not
 * kept after an installation, so the script gets none.
 * @returns the size of each dump in bytes
 * @throws StageFailure
 */
export async function runHelperScript(
  dependencies: InstallerDependencies,
  request: ScriptRequest,
  context: JobContext,
): Promise<readonly number[]> {
  const { instance } = request;
  const parameters = withoutLostSecrets(request.parameters);
  const mask = createMask(listHiddenValues(parameters));
  const stages = new StageRecorder({
    first: 'prepare-appliance',
    clock: dependencies.clock,
    context,
  });
  const path = scriptLogPath(dependencies.logDir, instance.uuid);
  stages.log = await InstallLog.create(path, mask);
  try {
    return await run(dependencies, { ...request, parameters }, stages, context);
  } catch (thrown) {
    const error: unknown =
      context.signal.aborted && !isAppError(thrown) ? context.signal.reason : thrown;
    throw inStage(pointToLog(error, path), stages.stage, stages.log.tail(), mask);
  } finally {
    await stages.log.close();
  }
}

async function run(
  dependencies: InstallerDependencies,
  request: ScriptRequest,
  stages: StageRecorder,
  context: JobContext,
): Promise<readonly number[]> {
  const { instance, os, script, operation, parameters, dumps } = request;
  await dependencies.disks.settle(instance);
  if ('host' in script) {
    return stages.timed('os-scripts', async () => {
      const sizes = await runOnHost(dependencies, request, script.host, stages, context);
      return [`${script.host.path} on the host`, sizes] as const;
    });
  }
  const sizes = await runAppliance(dependencies, {
    instance,
    appliance: request.appliance,
    diskPath: (index) => dependencies.disks.pathOf(instance, index),
    parameters,
    makeContent: (installId) =>
      buildInstallContent({
        instance,
        os,
        operation,
        installId,
        script: script.appliance,
        imageSizeBytes: null,
        hasPackage: false,
        hooks: [],
        dumps,
      }),
    contentDisks: dumps.map(({ disk, path: dumpPath }) => ({
      path: dumpPath,
      serial: dumpSerial(disk),
      readOnly: false,
      reportsFullHost: true,
    })),
    stages,
    context,
  });
  requirePlausible(sizes, dumps);
  return sizes;
}

async function runOnHost(
  { disks, hostCopies }: InstallerDependencies,
  { instance, os, operation, parameters, dumps }: ScriptRequest,
  { path, digest }: HostScript,
  stages: StageRecorder,
  { report, signal }: JobContext,
): Promise<readonly number[]> {
  await using copy = await hostCopies.make(os.definition, digest);
  const log = stages.openLog();
  const script = {
    instance,
    os: { ...os, definition: copy.definition },
    path: copy.pathOf(path),
    launch: copy.launch,
    diskPath: (index: number) => disks.pathOf(instance, index),
    signal,
    parameters,
    onLine: (line: string) => {
      log.appendOutput(line);
      report.output('os-scripts', log.tail().at(-1) ?? '');
    },
  };
  // `await` before the return: leaving this function removes the copy.
  if (operation.script === 'export') return await exportDumps(script, dumps);
  await runInstanceScript(script, operation);
  return [];
}

/** Names the log of this script in the hint. The original hint names the install log. */
function pointToLog(error: unknown, path: string): unknown {
  if (!isAppError(error, 'SCRIPT_FAILED')) return error;
  const { message, details, cause } = error;
  return new AppError('SCRIPT_FAILED', message, {
    details,
    cause,
    hint: `Its complete output is in ${path}`,
  });
}

/** Checks the sizes that the appliance reports: an untrusted script ran in it. */
function requirePlausible(sizes: readonly number[], dumps: readonly DumpFile[]): void {
  const isPlausible =
    sizes.length === dumps.length &&
    sizes.every((size, index) => size <= (dumps[index]?.sizeBytes ?? 0));
  if (!isPlausible)
    throw new AppError('APPLIANCE_NO_RESULT', 'the appliance did not report the size of the dumps');
}
