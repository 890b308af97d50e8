import { randomUUID } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';
import { BUILT_APPLIANCE } from '#shared/contract/appliance-manifest.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { opcode } from '#shared/contract/opcode.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { ARCHIVE_REFUSED, EXPLODE_SCRIPT } from '../../netboot/explode-script.ts';
import { diskSerial, dumpSerial } from '../../storage/disk-serials.ts';
import { InstallLog, installLogPath, removeLogs } from '../../host/install-log.ts';
import { NO_PAST, planNewInstance } from '../../instances/record/plan-record.ts';
import type { JobContext } from '../../jobs/job-handler.ts';
import { randomChannelMac } from '../../records/channel-addresses.ts';
import { runAppliance } from './appliance-session.ts';
import { explainDiskFull } from '../../storage/explain-disk-full.ts';
import { inStage } from '../../jobs/in-stage.ts';
import type { InstallerDependencies } from './install-request.ts';
import { planInstall } from './plan-install.ts';
import { StageRecorder } from '../../jobs/stage-recorder.ts';

/**
 * RFC 3927 reserves this address, so no instance has it. A node opens one archive at a time, in an
 * appliance without an instance.
 */
const ADDRESS = '169.254.0.1';
const NAME = 'uploadiso';
const SCRIPT = 'untrusted/export';

export interface ArchiveRequest {
  readonly archive: { readonly path: string; readonly sizeBytes: number };
  readonly targetPath: string;
  /** Limit for the written bytes. */
  readonly maxBytes: number;
}

/** Returns a record for the appliance. It is not in the store and has no disks. */
export function planArchiveMachine(nodeName: string, nowMs: number): InstanceRecord {
  const create = opcode.parse({ opcode: 'INSTANCE_CREATE', name: NAME, diskTemplate: 'diskless' });
  if (create.opcode !== 'INSTANCE_CREATE') throw new Error('not an INSTANCE_CREATE');
  const { channelNicUuid, ...planned } = planNewInstance(create, {
    ...{ nodeName, newUuid: randomUUID, newMac: () => randomChannelMac() },
  });
  return {
    ...{ ...planned, ...NO_PAST },
    channel: { ip: ADDRESS, mac: randomChannelMac(), uuid: channelNicUuid },
    ...{ createdAtMs: nowMs, modifiedAtMs: nowMs, serialNo: 1 },
  };
}

/**
 * Unpacks an archive in an appliance, by a script that runs like untrusted scripts: no code of this
 * host parses the archive. The reported size is a guest's claim.
 * @returns the number of written bytes, as the appliance reports it
 * @throws StageFailure
 */
export async function openArchive(
  dependencies: InstallerDependencies,
  instance: InstanceRecord,
  { archive, targetPath, maxBytes }: ArchiveRequest,
  context: JobContext,
): Promise<number> {
  const { clock, logDir } = dependencies;
  const stages = new StageRecorder({ first: 'prepare-appliance', clock, context });
  const mask = (text: string): string => text;
  stages.log = await InstallLog.create(installLogPath(logDir, instance.uuid), mask);
  try {
    const definitionTar = await packScript();
    const [written] = await runAppliance(dependencies, {
      instance,
      appliance: BUILT_APPLIANCE,
      diskPath: null,
      parameters: new Map(),
      makeContent: async (installId) => ({
        plan: {
          ...planInstall({
            ...{ instance, installId, imageSizeBytes: null, hasPackage: false },
            script: {
              name: 'export',
              path: SCRIPT,
              environment: { ARCHIVE_BYTES: String(archive.sizeBytes) },
              dumps: [{ disk: 0, sizeBytes: maxBytes }],
            },
          }),
          disks: [{ serial: diskSerial(0), sizeBytes: archive.sizeBytes }],
        },
        scripts: new Map([['export', Buffer.from(EXPLODE_SCRIPT)]]),
        definitionTar,
        imageSizeBytes: null,
        hasPackage: false,
      }),
      contentDisks: [
        { path: archive.path, serial: diskSerial(0), readOnly: true },
        { path: targetPath, serial: dumpSerial(0), readOnly: false, reportsFullHost: true },
      ],
      stages,
      context,
    });
    return written ?? 0;
  } catch (thrown) {
    const error: unknown =
      context.signal.aborted && !isAppError(thrown) ? context.signal.reason : thrown;
    const explained = await explainDiskFull(
      tellRefusal(error),
      () => freeBytesAt(targetPath),
      'gnt-bootenv add-iso',
    );
    throw inStage(explained, stages.stage, stages.log.tail(), mask);
  } finally {
    await stages.log.close();
    await removeLogs(logDir, instance.uuid);
  }
}

async function freeBytesAt(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

/**
 * Replaces the message about an OS definition's script with the script's message about the archive.
 */
function tellRefusal(error: unknown): unknown {
  if (!isAppError(error, 'SCRIPT_FAILED')) return error;
  const [said] = new RegExp(`${ARCHIVE_REFUSED}.*`).exec(error.message) ?? [];
  return said === undefined
    ? error
    : new AppError('IMAGE_INVALID', said, {
        cause: error,
        hint: 'Give the whole file: ISO 9660, or tar, optionally compressed with gzip, xz, zstd or bzip2.',
      });
}

async function packScript(): Promise<Buffer> {
  const archive = pack();
  const mtime = new Date(0);
  archive.entry({ name: 'untrusted', type: 'directory', mode: 0o755, mtime });
  archive.entry({ name: SCRIPT, mode: 0o755, mtime }, EXPLODE_SCRIPT);
  archive.finalize();
  return buffer(archive);
}
