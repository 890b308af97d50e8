import { AppError } from '#shared/errors/app-error.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { redactSource } from '#shared/contract/redact-source.ts';
import { BUILT_APPLIANCE } from '#shared/contract/appliance-manifest.ts';
import { GIB, MIB } from '#shared/units/bytes.ts';
import { bootEnvNotFound } from '../netboot/load-boot-plan.ts';
import { digestFile } from '../content/images/digest.ts';
import { planArchiveMachine } from '../provision/install/open-archive.ts';
import type { FetchedImage } from '../content/images/image-cache.ts';
import type { JobContext, JobHandler } from '../jobs/job-handler.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/** Limit of an archive's files, in multiples of the archive's size, compressed or not. */
const MAX_MULTIPLE = 20;
const MAX_OPENED_BYTES = 64 * GIB;
/** Bytes for the index and for the pointer to its beginning. */
const INDEX_ROOM_BYTES = 128 * MIB;
/** Ends an appliance that spins on its input. */
const OPEN_TIMEOUT_MS = 3_600_000;

/**
 * Opens an archive. Runs one at a time on a node, so that two uploads of one content open it once.
 */
export function uploadIsoHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'BOOTENV_UPLOAD_ISO'>> {
  const { clusters, images, archives } = dependencies;
  const open = archiveOpener(dependencies);
  return {
    prepare: async ({ bootEnv: name, source: given }) => {
      const bootEnv = await clusters.loadBootEnv(name);
      if (bootEnv === undefined) throw await bootEnvNotFound(name, clusters);
      const { IsoFile: isoFile, IsoUrl, Sha256 } = bootEnv.OS.SupportedArchitectures.amd64;
      if (isoFile === '') {
        throw new AppError('BOOTENV_NO_SOURCE', `the boot environment ${name} names no IsoFile`, {
          hint: 'It boots from a repository, which the param package-repositories names.',
        });
      }
      const source = given ?? IsoUrl;
      if (source === '') {
        throw new AppError('BOOTENV_NO_SOURCE', `the boot environment ${name} has no IsoUrl`, {
          hint: `Give the file: gnt-bootenv add-iso ${name} ./${isoFile}`,
        });
      }
      await images.check(source);
      return async (context) => {
        const { report, signal } = context;
        const image = await images.fetch(source, {
          signal,
          onProgress: (done, total) => report.progress('fetch-image', done, total),
          onWait: (message) => report.log(message),
          ...(Sha256 !== '' && { checksum: `sha256:${Sha256}` }),
        });
        try {
          const sha256 = image.sha256 ?? (await digestFile(image, 'sha256', { signal }));
          if (await archives.name(isoFile, sha256)) {
            report.log(`${isoFile} is already open`);
            return { isoFile, sha256 };
          }
          const files = await open(image, { isoFile, sha256 }, context);
          report.log(`${files} files of ${redactSource(source)} as ${isoFile}`);
          return { isoFile, sha256, files };
        } finally {
          image.release();
        }
      };
    },
  };
}

/** Opens an archive in an appliance. @returns the number of its files */
type OpenContent = (
  image: FetchedImage,
  as: { readonly isoFile: string; readonly sha256: string },
  context: JobContext,
) => Promise<number>;

function archiveOpener({
  archives,
  disks,
  installer,
  nodeName,
  clock,
}: OperationDependencies): OpenContent {
  return async (image, { isoFile, sha256 }, context) => {
    const maxBytes = roomFor(image.sizeBytes, await disks.freeBytes());
    if (maxBytes === null) {
      throw new AppError('DISK_SPACE', `there is no space for the files of ${isoFile}`, {
        hint: 'Free space below var/lib/gnt.',
      });
    }
    await using target = await archives.create(sha256, maxBytes);
    const instance = planArchiveMachine(nodeName, clock.now());
    const machine = { isFromMedium: false, appliance: BUILT_APPLIANCE };
    using held = new DisposableStack();
    held.use(await installer.enterRoom(instance, machine, context));
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(OPEN_TIMEOUT_MS)]);
    const request = { archive: image, targetPath: target.path, maxBytes };
    const written = await installer.openArchive(instance, request, { ...context, signal });
    return await target.keep(isoFile, written, image, context.signal);
  };
}

/** Returns the bytes that the files and the index may take, or null if there is too little room. */
function roomFor(archiveBytes: number, freeBytes: number): number | null {
  const asked = archiveBytes * MAX_MULTIPLE + INDEX_ROOM_BYTES;
  const maxBytes = Math.min(asked, MAX_OPENED_BYTES, Math.max(0, freeBytes - GIB));
  return maxBytes < archiveBytes + INDEX_ROOM_BYTES ? null : alignDown(maxBytes);
}

/** QEMU's disks are whole sectors. */
function alignDown(bytes: number): number {
  return bytes - (bytes % MIB);
}
