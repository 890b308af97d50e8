import { open } from 'node:fs/promises';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { imageTooLarge } from '#shared/errors/image-too-large.ts';
import { writeSparse } from '../../storage/write-sparse.ts';
import { readImageBytes, type SizedFile } from './image-bytes.ts';
import type { FetchedImage } from './image-cache.ts';

/** First bytes of files that the appliance decompresses: gz, xz, zst, bz2. */
const COMPRESSED = ['1f8b08', 'fd377a585a00', '28b52ffd', '425a68'] as const;

const SECTOR_BYTES = 512;
/** Ends the first sector of a partitioned disk. */
const BOOT_SIGNATURE = '55aa';

type Wanted = Pick<
  InstanceRecord,
  'safeInstall' | 'osImageFormat' | 'osImageGrow' | 'personalizationPackage' | 'disks'
>;

/**
 * Whether the host writes the image: the operator disabled the appliance, and the image needs no
 * inspection. Reports to the job what needs an appliance nevertheless.
 * @throws AppError IMAGE_TOO_LARGE as far as the size is known without inspection
 */
export async function isImageForHost(
  instance: Wanted,
  image: FetchedImage | null,
  hasHooks: boolean,
  report: { log(message: string, level?: 'info' | 'warn'): void },
): Promise<boolean> {
  const { safeInstall, osImageFormat, personalizationPackage } = instance;
  const isCompressed = image !== null && (await startsCompressed(image));
  if (image !== null && osImageFormat === 'raw' && !isCompressed) requireImageFits(image, instance);
  if (safeInstall) return false;
  if (personalizationPackage !== null)
    report.log(
      "the appliance applies the personalization package: the host never opens a guest's file system",
    );
  if (image === null) return false;
  const why = whyNotOnHost(instance, { hasHooks, isCompressed });
  if (why !== null) report.log(`the appliance writes the image: ${why}`);
  return why === null;
}

/**
 * Returns the reason why the appliance writes the image although the operator disabled it. Null
 * when the host writes it; the host only checks whether the bytes are compressed.
 */
function whyNotOnHost(
  { osImageFormat, osImageGrow }: Wanted,
  { hasHooks, isCompressed }: { readonly hasHooks: boolean; readonly isCompressed: boolean },
): string | null {
  if (osImageFormat !== 'raw')
    return 'the appliance detects its format; --image-format raw skips that';
  if (osImageGrow) return 'its file system grows';
  if (hasHooks) return 'it has hooks';
  return isCompressed ? 'it is compressed' : null;
}

async function startsCompressed(image: Pick<FetchedImage, 'path'>): Promise<boolean> {
  return isCompressedHead(await readHead(image));
}

async function readHead({ path }: Pick<FetchedImage, 'path'>): Promise<Buffer> {
  await using file = await open(path, 'r');
  const { buffer, bytesRead } = await file.read(Buffer.alloc(SECTOR_BYTES), 0, SECTOR_BYTES, 0);
  return buffer.subarray(0, bytesRead);
}

function isCompressedHead(head: Buffer): boolean {
  return COMPRESSED.some((start) => head.toString('hex').startsWith(start));
}

/**
 * Refuses a file that is certainly larger than the first disk: a raw image by its declared format
 * or its boot signature. The appliance inspects all other formats.
 * @throws AppError IMAGE_TOO_LARGE
 */
export async function refuseOversizedImage(
  image: SizedFile,
  instance: Pick<Wanted, 'osImageFormat' | 'disks'>,
): Promise<void> {
  const { osImageFormat, disks } = instance;
  if (disks.length === 0 || (osImageFormat !== null && osImageFormat !== 'raw')) return;
  const head = await readHead(image);
  if (isCompressedHead(head)) return;
  const isRaw =
    osImageFormat === 'raw' || head.toString('hex', SECTOR_BYTES - 2) === BOOT_SIGNATURE;
  if (isRaw) requireImageFits(image, instance);
}

/** @throws AppError IMAGE_TOO_LARGE */
function requireImageFits(
  image: Pick<FetchedImage, 'sizeBytes'>,
  { disks }: Pick<InstanceRecord, 'disks'>,
): void {
  const diskBytes = disks[0]?.sizeBytes ?? 0;
  if (image.sizeBytes > diskBytes) throw imageTooLarge(image.sizeBytes, diskBytes);
}

/**
 * Copies an image to the beginning of an empty disk.
 * @returns a summary for the job
 * @throws AppError IMAGE_UNREADABLE when the image changed meanwhile, or the signal's reason
 */
export async function writeImage(
  image: FetchedImage,
  diskPath: string,
  signal: AbortSignal,
  onProgress: (doneBytes: number, totalBytes: number) => void,
): Promise<string> {
  await using to = await open(diskPath, 'r+');
  let writtenBytes = 0;
  let done = 0;
  for await (const chunk of readImageBytes(image, signal)) {
    writtenBytes += await writeSparse(to, chunk, done);
    done += chunk.length;
    onProgress(done, image.sizeBytes);
  }
  await image.verifyUnchanged();
  return `raw, ${done} bytes, ${writtenBytes} of them written, on the host`;
}
