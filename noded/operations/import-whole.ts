import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { zstdDecompress } from 'node:zlib';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { WholeExport } from '../instances/backup/export-record.ts';
import type { LoadedExport } from '../instances/backup/export-store.ts';
import { expandDisk } from '../storage/compressed-disk.ts';
import { MAX_VARIABLES_BYTES, variablesPath } from '../storage/firmware-variables.ts';
import { diskPath } from '../storage/install-disks.ts';
import { noSecrets } from '../instances/parameters/job-secrets.ts';
import type { Execution, JobContext } from '../jobs/job-handler.ts';
import { randomNicMac } from '../records/channel-addresses.ts';
import type { NewInstance } from '../records/instance-repository.ts';
import { checkRunLists } from './check-run-lists.ts';
import { addUp } from './dump-whole.ts';
import { checkHostPaths } from './host-paths.ts';
import type { OperationDependencies } from './operation-dependencies.ts';
import { planWhole } from './plan-whole.ts';
import { refuseOversized } from '../instances/view/refuse-oversized.ts';
import { startAfter } from './start-again.ts';
import { refuseUnknownProfiles } from './profiles.ts';

/**
 * Makes an instance from an export of whole disks. As with a copy, the disks come before the
 * record, and the commit of the record makes the instance. A kill or a failure before the commit
 * leaves nothing.
 * @throws AppError of exit status 2
 */
export async function prepareImportWhole(
  opcode: OpcodeOf<'INSTANCE_CREATE'>,
  imported: LoadedExport,
  whole: WholeExport,
  dependencies: OperationDependencies,
): Promise<Execution> {
  const { instances, clusters, disks, runner, nodeName } = dependencies;
  const drawnMacs = new Set<string>();
  const newMac = (): string => {
    const mac = randomNicMac();
    drawnMacs.add(mac);
    return mac;
  };
  const planned = planWhole(opcode, imported, whole, { nodeName, newUuid: randomUUID, newMac });
  refuseOversized(planned.beparams);
  await disks.checkSizes(planned.disks, planned);
  await disks.requireRoom(whole.takenBytes);
  await checkHostPaths(planned, clusters);
  await checkRunLists(planned, dependencies);
  await refuseUnknownProfiles(planned.profiles, clusters);
  await runner.checkRunnable(planned);
  return async (context) => {
    const made = await disks.make(planned, {
      fill: (dir) => fill(dir, planned, imported, whole, { ...context, disks }),
      commit: () => instances.create(planned, { drawnMacs }),
      isThere: async (uuid) => (await instances.findByUuid(uuid)) !== undefined,
    });
    context.report.log(`instance ${made.name} has the channel address ${made.channel.ip}`);
    if (made.secretNames.length > 0) {
      context.report.log(
        `secrets are not exported. Supply ${made.secretNames.join(', ')}: gnt-instance startup ${made.name} --os-parameters-secret NAME=@FILE`,
        'warn',
      );
    }
    if (opcode.start) {
      const start = (): Promise<void> => runner.start(made, noSecrets, context);
      await startAfter('the instance is imported', made.name, start, context.signal);
    }
    return { name: made.name, uuid: made.uuid };
  };
}

/** Fills disks from the checked files: their paths may lead elsewhere by now. */
async function fill(
  dir: string,
  { instanceId }: Pick<NewInstance, 'instanceId'>,
  imported: LoadedExport,
  { instance, variables }: WholeExport,
  { report, signal, disks }: JobContext & Pick<OperationDependencies, 'disks'>,
): Promise<void> {
  const checkSpace = (): Promise<void> => disks.checkSpace();
  await using pinned = await imported.pin();
  const onDisk = addUp(instance.disks, (done, total) =>
    report.progress('importing disks', done, total),
  );
  for (const [disk, { sizeBytes }] of instance.disks.entries()) {
    const [from, shown] = [pinned, imported].map(
      ({ dumps }) => dumps.find((dump) => dump.disk === disk)?.path,
    );
    if (from === undefined || shown === undefined) throw new Error(`disk ${disk} has no dump`);
    const to = diskPath(dir, disk);
    await expandDisk({ from, shown, to, sizeBytes, checkSpace }, signal, onDisk(disk));
  }
  if (variables === null) return;
  const bytes = await expandVariables(variables, imported.path);
  await writeFile(variablesPath(dir, instanceId), bytes, { mode: 0o600, flag: 'wx' });
}

async function expandVariables(variables: string, path: string): Promise<Buffer> {
  try {
    const compressed = Buffer.from(variables, 'base64');
    return await promisify(zstdDecompress)(compressed, { maxOutputLength: MAX_VARIABLES_BYTES });
  } catch (error) {
    throw new AppError('EXPORT_INVALID', `the firmware's variables in ${path} cannot be read`, {
      ...{ details: { path }, cause: error },
    });
  }
}
