import { open } from 'node:fs/promises';
import type { ContainerFormat, ImageFormatName } from '#shared/contract/image-formats.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { imageTooLarge } from '#shared/errors/image-too-large.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { lastLineOf } from '#shared/text/lines.ts';
import type { CommandResult } from '../process/command.ts';
import type { StageReporter } from '../report/stage.ts';
import { decompress } from './decompress.ts';
import { findTableFault, looksLikeDisk } from './disk-signature.ts';
import {
  type Compression,
  describeFormat,
  HEADER_BYTES,
  type ImageFormat,
  type Remedy,
  recognizeImage,
  vdiMinimumBytes,
} from './format.ts';
import { type ImageJail, JAILED_IMAGE } from './image-jail.ts';

export interface ExamineOptions {
  readonly sourcePath: string;
  readonly jail: ImageJail;
  /** Bytes of the image file; the rest of the disk is padding. */
  readonly fileSizeBytes: number;
  readonly targetSizeBytes: number;
  /** The operator's format; null: detected by content. */
  readonly format: ImageFormatName | null;
  readonly reporter: StageReporter;
}

export type ExaminedImage =
  | { readonly kind: 'plain'; readonly format: ImageFormatName; readonly sizeBytes: number }
  | {
      readonly kind: 'compressed';
      readonly compression: Compression;
      readonly sizeBytes: number;
    };

/**
 * Finds all faults of an image that are detectable without writing.
 * @throws AppError IMAGE_TOO_LARGE, IMAGE_BACKING_FILE, IMAGE_INVALID
 */
export async function examineImage(options: ExamineOptions): Promise<ExaminedImage> {
  const { sourcePath, fileSizeBytes } = options;
  const head = await readHead(sourcePath, fileSizeBytes);
  const format = chooseFormat(recognizeImage(head), options.format);
  const name = describeFormat(format);
  switch (format.kind) {
    case 'unsupported':
      throw new AppError('IMAGE_INVALID', `the image is ${format.what}, which is not supported`, {
        hint: `${remedyOf(format)}. ${SAY_THE_FORMAT}`,
      });
    case 'container':
      if (format.external) {
        const { role, name: other } = format.external;
        throw new AppError(
          'IMAGE_BACKING_FILE',
          `the ${name} image needs its ${role} ${other}, which is not available`,
          {
            hint: FLATTEN,
          },
        );
      }
      if (format.format === 'vdi' && fileSizeBytes < vdiMinimumBytes(head))
        throw new AppError(
          'IMAGE_INVALID',
          `the vdi image is truncated: it has ${fileSizeBytes} of ${vdiMinimumBytes(head)} bytes`,
          { hint: FETCH_AGAIN },
        );
      return await examineContainer(options, format.format);
    case 'raw':
      requireDisk(head, fileSizeBytes, options.format);
      refuseLarger(fileSizeBytes, options.targetSizeBytes);
      return { kind: 'plain', format: 'raw', sizeBytes: fileSizeBytes };
    case 'compressed':
      return await examineCompressed(options, format.compression);
  }
}

export function describeImage(image: ExaminedImage): string {
  const what = image.kind === 'plain' ? image.format : `raw in ${image.compression}`;
  return `${what}, ${image.sizeBytes} bytes`;
}

/**
 * Combines the detected with the operator's format. A declared raw image is written as it is,
 * except a compressed file, whose content is written. Any other declared format must be the
 * detected one.
 */
function chooseFormat(found: ImageFormat, said: ImageFormatName | null): ImageFormat {
  if (said === null) return found;
  if (said === 'raw') return found.kind === 'compressed' ? found : { kind: 'raw' };
  if (found.kind === 'container' && found.format === said) return found;
  throw new AppError('IMAGE_INVALID', `the image is ${describeFormat(found)}, not ${said}`, {
    hint: 'Leave out --image-format, or give the correct format.',
  });
}

const FLATTEN = 'Flatten it: qemu-img convert -O qcow2 OLD NEW';
export const FETCH_AGAIN =
  'Fetch the image again and compare its checksum: --os-image-checksum sha256:…';
const SAY_THE_FORMAT = 'If it is a disk image nevertheless, name its format: --image-format FORMAT';

const REMEDIES: Readonly<Record<Remedy, string>> = {
  unpack: 'Unpack it (tar -xf FILE for .tar and .tar.gz) and use the disk image in it',
  decompress: 'Decompress it and use the disk image',
  none: 'Check the downloaded file',
};

function remedyOf({ remedy }: Extract<ImageFormat, { kind: 'unsupported' }>): string {
  return remedy === undefined
    ? 'Convert it with qemu-img convert -O qcow2 OLD NEW'
    : REMEDIES[remedy];
}

/**
 * @param head of the disk in the image
 * @param said the operator's format, which makes the check unnecessary
 * @throws AppError IMAGE_INVALID
 */
function requireDisk(head: Buffer, sizeBytes: number, said: ImageFormatName | null): void {
  if (said !== null) return;
  if (!looksLikeDisk(head)) {
    const what = head.every((byte) => byte === 0)
      ? 'it begins with zeros'
      : 'its content is unknown';
    throw new AppError(
      'IMAGE_INVALID',
      `the image has no boot sector, partition table or file system: ${what}`,
      { hint: `Check the downloaded file. ${SAY_THE_FORMAT}` },
    );
  }
  const fault = findTableFault(head, sizeBytes);
  if (fault !== null)
    throw new AppError('IMAGE_INVALID', `cannot use the image: ${fault}`, {
      hint: `Fetch it again and compare its checksum: --os-image-checksum sha256:…. ${SAY_THE_FORMAT}`,
    });
}

async function readHead(path: string, sizeBytes: number): Promise<Buffer> {
  await using file = await open(path, 'r');
  const head = Buffer.alloc(Math.min(HEADER_BYTES, sizeBytes));
  const { bytesRead } = await file.read(head, 0, head.length, 0);
  return head.subarray(0, bytesRead);
}

function refuseLarger(imageBytes: number, diskBytes: number): void {
  if (imageBytes > diskBytes) throw imageTooLarge(imageBytes, diskBytes);
}

async function examineContainer(
  { jail, targetSizeBytes, format: said }: ExamineOptions,
  format: ContainerFormat,
): Promise<ExaminedImage> {
  // Each takes longer to start than to read: all run together, and are judged in this order.
  const [described, checked, head] = await jail.runTogether([
    ['qemu-img', 'info', '--output=json', '-f', format, JAILED_IMAGE],
    ['qemu-img', 'check', '-q', alone(format)],
    planHeadInside(format),
  ]);
  const sizeBytes = virtualSize(described, format);
  refuseLarger(sizeBytes, targetSizeBytes);
  requireSoundTables(checked, format);
  requireDisk(headOf(head), sizeBytes, said);
  return { kind: 'plain', format, sizeBytes };
}

function virtualSize(result: CommandResult, format: ContainerFormat): number {
  if (result.status !== 0) {
    throw new AppError(
      'IMAGE_INVALID',
      `cannot open the ${format} image: ${lastLineOf(result.stderr)}`,
      { hint: FETCH_AGAIN },
    );
  }
  const info = parseJson(result.stdout);
  if (!isDescription(info))
    throw new AppError(
      'IMAGE_INVALID',
      `the description of the ${format} image is too large, for example because of thousands of snapshots`,
      { hint: `Convert it to a plain image: qemu-img convert -O ${format} IMAGE NEW` },
    );
  if (typeof info['backing-filename'] === 'string')
    throw new AppError(
      'IMAGE_BACKING_FILE',
      `the ${format} image needs its backing file ${info['backing-filename']}`,
      { hint: FLATTEN },
    );
  const size = info['virtual-size'];
  if (typeof size !== 'number')
    throw new AppError('IMAGE_INVALID', `the ${format} image has no size`, { hint: FETCH_AGAIN });
  return size;
}

/** Output above the size limit is cut, so that it is not JSON. */
function isDescription(
  info: unknown,
): info is { readonly 'virtual-size'?: unknown; readonly 'backing-filename'?: unknown } {
  return typeof info === 'object' && info !== null;
}

/**
 * Opens the image without its backing file, which `qemu-img info` does not open either: an image
 * that is refused for it must not make another tool wait for an absent server.
 */
function alone(format: ContainerFormat): string {
  return `json:${JSON.stringify({ driver: format, 'file.filename': JAILED_IMAGE, backing: null })}`;
}

function planHeadInside(format: ContainerFormat): readonly string[] {
  const args = ['-O', 'raw', `if=${alone(format)}`, 'of=/tmp/head'];
  const script = 'qemu-img dd "$@" && exec base64 -w 0 /tmp/head';
  return ['/bin/sh', '-c', script, 'sh', ...args, `bs=${HEADER_BYTES}`, 'count=1'];
}

function headOf(result: CommandResult): Buffer {
  if (result.status !== 0)
    throw new AppError('IMAGE_INVALID', `cannot read the image: ${lastLineOf(result.stderr)}`, {
      hint: FETCH_AGAIN,
    });
  return Buffer.from(result.stdout, 'base64');
}

/**
 * Exit statuses of `qemu-img check` for usable images: sound, leaked clusters, which are harmless,
 * and a format without a check. A killed check has no result.
 */
const CHECK_PASSED: readonly number[] = [0, 3, 63];

/**
 * Checks the image's own tables with `qemu-img check`: QEMU reads zeros beyond the end of a
 * truncated file without an error.
 * @throws AppError IMAGE_INVALID
 */
function requireSoundTables(result: CommandResult, format: ContainerFormat): void {
  if (CHECK_PASSED.includes(result.status)) return;
  const reason = lastLineOf(result.stderr) || lastLineOf(result.stdout);
  throw new AppError('IMAGE_INVALID', `the ${format} image is damaged or truncated: ${reason}`, {
    hint: FETCH_AGAIN,
  });
}

async function examineCompressed(
  options: ExamineOptions,
  compression: Compression,
): Promise<ExaminedImage> {
  const source = { path: options.sourcePath, sizeBytes: options.fileSizeBytes };
  options.reporter.log(`checking the ${compression} stream and its size`);
  const sizeBytes = await measure(source, compression, options);
  refuseLarger(sizeBytes, options.targetSizeBytes);
  return { kind: 'compressed', compression, sizeBytes };
}

/** Measures images up to this multiple of the disk. A few kilobytes can hold zeros for years. */
const MAX_TOO_LARGE = 16;

/**
 * Decompresses without output, to find the size and verify the stream before the disk is changed.
 */
async function measure(
  source: { path: string; sizeBytes: number },
  compression: Compression,
  { jail, reporter, format, targetSizeBytes }: ExamineOptions,
): Promise<number> {
  let sizeBytes = 0;
  let head = Buffer.alloc(0);
  let readBytes = 0;
  const counted = {
    ...source,
    onRead: (bytes: number) => {
      readBytes += bytes;
      reporter.progress(readBytes, source.sizeBytes);
    },
  };
  for await (const chunk of decompress(jail, counted, compression)) {
    if (head.length < HEADER_BYTES)
      head = Buffer.concat([head, chunk.subarray(0, HEADER_BYTES - head.length)]);
    sizeBytes += chunk.length;
    if (sizeBytes > MAX_TOO_LARGE * targetSizeBytes)
      throw imageTooLarge(sizeBytes, targetSizeBytes, false);
  }
  const inner = recognizeImage(head);
  if (inner.kind !== 'raw' && format === null) {
    throw new AppError(
      'IMAGE_INVALID',
      `the ${compression} file holds ${describeFormat(inner)}, not a raw disk`,
      {
        hint:
          inner.kind === 'unsupported'
            ? `${remedyOf(inner)}; ${SAY_THE_FORMAT}`
            : 'Decompress it first. Only raw images may be compressed as a whole.',
      },
    );
  }
  if (sizeBytes === 0)
    throw new AppError('IMAGE_INVALID', `the ${compression} file is empty`, {
      hint: FETCH_AGAIN,
    });
  requireDisk(head, sizeBytes, format);
  return sizeBytes;
}
