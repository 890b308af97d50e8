import { open, type FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { ContainerFormat, ImageFormatName } from '#shared/contract/primitives.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { runCommand, tryCommand } from '../process/command.ts';
import type { StageReporter } from '../report/stage.ts';
import { compareImage, type ImageDriver } from './compare.ts';
import { decompress } from './decompress.ts';
import { findTableFault, looksLikeDisk } from './disk-signature.ts';
import {
  type Compression,
  describeFormat,
  HEADER_BYTES,
  type ImageFormat,
  recognizeImage,
  vdiMinimumBytes,
} from './format.ts';
import { ImageJail, JAILED_DISK, JAILED_IMAGE } from './image-jail.ts';
import { CHUNK_BYTES, SparseWriter } from './sparse-writer.ts';

const SECTOR_BYTES = 512;

export interface DumpOptions {
  /** Disk or file that holds the image. */
  readonly sourcePath: string;
  /** Bytes of the image file; what the disk has beyond is padding. */
  readonly fileSizeBytes: number;
  readonly targetPath: string;
  readonly targetSizeBytes: number;
  /** It reads as zeros, since it was made for this installation: there is nothing to throw away. */
  readonly isTargetBlank: boolean;
  /** What the operator says that it is; null: found by content. */
  readonly format: ImageFormatName | null;
  readonly driver: ImageDriver;
  readonly reporter: StageReporter;
}

/**
 * Writes an image of any known format to a disk: sparse, and compared with its source afterwards.
 * @returns a sentence with format and sizes
 * @throws AppError IMAGE_TOO_LARGE and IMAGE_BACKING_FILE before the first byte is written,
 * IMAGE_INVALID, IMAGE_DUMP
 */
export async function dumpImage(options: DumpOptions): Promise<string> {
  const head = await readHead(options.sourcePath, options.fileSizeBytes);
  const format = chooseFormat(recognizeImage(head), options.format);
  const name = describeFormat(format);
  switch (format.kind) {
    case 'unsupported':
      throw new AppError('IMAGE_INVALID', `the image is ${format.what}, which is not supported`, {
        hint: `convert it with qemu-img convert -O qcow2; ${SAY_THE_FORMAT}`,
      });
    case 'container':
      if (format.external) {
        const { role, name: other } = format.external;
        throw new AppError('IMAGE_BACKING_FILE', `the ${name} image needs its ${role} ${other}`, {
          hint: 'flatten it: qemu-img convert -O qcow2 OLD NEW',
        });
      }
      if (format.format === 'vdi' && options.fileSizeBytes < vdiMinimumBytes(head))
        throw new AppError(
          'IMAGE_INVALID',
          `the vdi image is cut: it has ${options.fileSizeBytes} of ${vdiMinimumBytes(head)} bytes`,
        );
      return await dumpWithQemuImg(options, format.format);
    case 'raw':
      requireDisk(head, options.fileSizeBytes, options.format);
      return await dumpWithQemuImg(options, 'raw');
    case 'compressed':
      return await dumpCompressed(options, format.compression);
  }
}

/**
 * What an operator calls raw is written as it is, whatever it looks like, but for a compressed
 * file: what is in that is meant. Another format has to be what the file says of itself.
 */
function chooseFormat(found: ImageFormat, said: ImageFormatName | null): ImageFormat {
  if (said === null) return found;
  if (said === 'raw') return found.kind === 'compressed' ? found : { kind: 'raw' };
  if (found.kind === 'container' && found.format === said) return found;
  throw new AppError('IMAGE_INVALID', `the image is ${describeFormat(found)}, not ${said}`, {
    hint: 'leave out --image-format, or give the right one',
  });
}

const SAY_THE_FORMAT = 'if it is a disk all the same, say so: --image-format FORMAT';

/**
 * @param head of the disk that the image holds
 * @param said by the operator: then it is a disk
 * @throws AppError IMAGE_INVALID
 */
function requireDisk(head: Buffer, sizeBytes: number, said: ImageFormatName | null): void {
  if (said !== null) return;
  if (!looksLikeDisk(head)) {
    const what = head.every((byte) => byte === 0) ? 'it begins with zeros' : 'it is something else';
    throw new AppError(
      'IMAGE_INVALID',
      `the image holds no boot sector, partition table or file system: ${what}`,
      { hint: `look at what was downloaded; ${SAY_THE_FORMAT}` },
    );
  }
  const fault = findTableFault(head, sizeBytes);
  if (fault !== null)
    throw new AppError('IMAGE_INVALID', `the image cannot be used: ${fault}`, {
      hint: `fetch it again and compare its checksum: --os-image-checksum sha256:…; ${SAY_THE_FORMAT}`,
    });
}

async function readHead(path: string, sizeBytes: number): Promise<Buffer> {
  await using file = await open(path, 'r');
  const head = Buffer.alloc(Math.min(HEADER_BYTES, sizeBytes));
  const { bytesRead } = await file.read(head, 0, head.length, 0);
  return head.subarray(0, bytesRead);
}

function refuseLarger(imageBytes: number, diskBytes: number): void {
  if (imageBytes <= diskBytes) return;
  throw new AppError(
    'IMAGE_TOO_LARGE',
    `the image needs ${imageBytes} bytes, the disk has ${diskBytes} bytes`,
    {
      hint: `make the disk larger: --os-size ${Math.ceil(imageBytes / (1024 * 1024))}m`,
      details: { imageBytes, diskBytes },
    },
  );
}

/**
 * Throws away what the disk held. Punching a hole, unlike discarding, is defined to read as zeros
 * afterwards, whatever the host makes of discards; where the host can, it frees the space too.
 * @returns whether the disk reads as zeros now
 */
async function clear(options: DumpOptions): Promise<boolean> {
  if (options.isTargetBlank) return true;
  const { targetPath, targetSizeBytes } = options;
  const args = ['--punch-hole', '--offset', '0', '--length', String(targetSizeBytes), targetPath];
  return (await tryCommand('fallocate', args)).status === 0;
}

async function dumpWithQemuImg(options: DumpOptions, format: ImageFormatName): Promise<string> {
  const { sourcePath, targetPath, fileSizeBytes, reporter } = options;
  await using jail = await ImageJail.open(sourcePath, targetPath);
  let sizeBytes = fileSizeBytes;
  if (format !== 'raw') {
    sizeBytes = await virtualSize(jail, format);
    refuseLarger(sizeBytes, options.targetSizeBytes);
    await checkTables(jail, format);
    requireDisk(await readHeadInside(jail, format), sizeBytes, options.format);
  } else refuseLarger(sizeBytes, options.targetSizeBytes);
  const startedAt = performance.now();
  const isZeroed = await clear(options);
  const copied = await jail.run(
    'qemu-img',
    [
      ...['convert', '-p', '-f', format, '-O', 'raw', '-n', '-W', '-S', '64k'],
      ...['-t', 'none', '-T', 'none'],
      ...(isZeroed ? ['--target-is-zero'] : []),
      ...[JAILED_IMAGE, JAILED_DISK],
    ],
    {
      onStdout: (text) => {
        const percent = /([0-9.]{1,9})\/100%/.exec(text)?.[1];
        if (percent !== undefined)
          reporter.progress((Number(percent) / 100) * sizeBytes, sizeBytes);
      },
    },
  );
  if (copied.status !== 0) throw dumpFailure(copied.stderr);
  const copiedMs = performance.now() - startedAt;
  await compareImage({ jail, format, sizeBytes: roundUp(sizeBytes), driver: options.driver });
  return `${format}, ${sizeBytes} bytes at ${rate(sizeBytes, copiedMs)}, compared in ${seconds(performance.now() - startedAt - copiedMs)}`;
}

async function virtualSize(jail: ImageJail, format: ContainerFormat): Promise<number> {
  const args = ['info', '--output=json', '-f', format, JAILED_IMAGE];
  const result = await jail.run('qemu-img', args);
  if (result.status !== 0) {
    throw new AppError(
      'IMAGE_INVALID',
      `the ${format} image cannot be opened: ${lastLine(result.stderr)}`,
    );
  }
  // qemu-img prints an object; both of its values are judged below.
  const info = JSON.parse(result.stdout) as {
    'virtual-size'?: unknown;
    'backing-filename'?: unknown;
  };
  if (typeof info['backing-filename'] === 'string')
    throw new AppError(
      'IMAGE_BACKING_FILE',
      `the ${format} image needs its backing file ${info['backing-filename']}`,
    );
  const size = info['virtual-size'];
  if (typeof size !== 'number')
    throw new AppError('IMAGE_INVALID', `the ${format} image has no size`);
  return size;
}

/** The first bytes of the disk that a container holds. */
async function readHeadInside(jail: ImageJail, format: ContainerFormat): Promise<Buffer> {
  const args = ['-f', format, '-O', 'raw', `if=${JAILED_IMAGE}`, 'of=/tmp/head'];
  const script = 'qemu-img dd "$@" && base64 -w 0 /tmp/head && rm /tmp/head';
  const result = await jail.run('/bin/sh', [
    ...['-c', script, 'sh', ...args, `bs=${HEADER_BYTES}`, 'count=1'],
  ]);
  if (result.status !== 0) throw dumpFailure(result.stderr);
  return Buffer.from(result.stdout, 'base64');
}

/**
 * Exit status of `qemu-img check`: 2 is damage; 3 (unused space) does no harm, 63 means that the
 * format has no check.
 */
const CHECK_DAMAGED = 2;

/**
 * Looks at the image's own tables: QEMU reads zeros where a cut file has nothing, and would not
 * complain.
 * @throws AppError IMAGE_INVALID
 */
async function checkTables(jail: ImageJail, format: ContainerFormat): Promise<void> {
  const result = await jail.run('qemu-img', ['check', '-q', '-f', format, JAILED_IMAGE]);
  if (result.status !== CHECK_DAMAGED && result.status !== 1) return;
  const [reason = ''] = (result.stderr + result.stdout).trim().split('\n');
  throw new AppError('IMAGE_INVALID', `the ${format} image is damaged or cut: ${reason}`, {
    hint: 'fetch the image again and compare its checksum: --os-image-checksum sha256:…',
  });
}

/** qemu-img says alike that it cannot read the image and that it cannot write the disk. */
function dumpFailure(stderr: string): AppError {
  const reason = lastLine(stderr);
  if (/error while reading|Could not open|corrupt|invalid/i.test(reason))
    return new AppError('IMAGE_INVALID', `the image cannot be read: ${reason}`);
  return new AppError('IMAGE_DUMP', `the disk could not be written: ${reason}`);
}

async function dumpCompressed(options: DumpOptions, compression: Compression): Promise<string> {
  const { reporter, targetPath, targetSizeBytes } = options;
  const source = { path: options.sourcePath, sizeBytes: options.fileSizeBytes };
  reporter.log(`checking the ${compression} stream and its size`);
  await using jail = await ImageJail.open(options.sourcePath, targetPath);
  const sizeBytes = await measure(jail, source, compression, options);
  refuseLarger(sizeBytes, targetSizeBytes);
  const startedAt = performance.now();
  if (!(await clear(options))) await runCommand('blkdiscard', ['-f', '-z', targetPath]);
  await using disk = await open(targetPath, 'r+');
  const writer = new SparseWriter({ write: (bytes, offset) => writeFully(disk, bytes, offset) });
  for await (const chunk of decompress(jail, source, compression)) {
    await writer.push(chunk);
    reporter.progress(writer.totalBytes, sizeBytes);
  }
  await writer.end();
  await disk.sync();
  const copiedMs = performance.now() - startedAt;
  await dropCache(targetPath);
  await compareChecksums(disk, writer, reporter);
  return `raw in ${compression}, ${sizeBytes} bytes (${writer.writtenBytes} not zero) at ${rate(sizeBytes, copiedMs)}, compared in ${seconds(performance.now() - startedAt - copiedMs)}`;
}

/**
 * Decompresses to nowhere: the size, and the proof that the stream is whole, before the disk is
 * touched.
 */
async function measure(
  jail: ImageJail,
  source: { path: string; sizeBytes: number },
  compression: Compression,
  { reporter, format }: DumpOptions,
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
  }
  const inner = recognizeImage(head);
  if (inner.kind !== 'raw' && format === null) {
    throw new AppError(
      'IMAGE_INVALID',
      `the ${compression} file holds ${describeFormat(inner)}, not a raw disk`,
      {
        hint: 'decompress it first: only raw images may be compressed as a whole',
      },
    );
  }
  if (sizeBytes === 0) throw new AppError('IMAGE_INVALID', `the ${compression} file is empty`);
  requireDisk(head, sizeBytes, format);
  return sizeBytes;
}

async function writeFully(disk: FileHandle, bytes: Buffer, offset: number): Promise<void> {
  let done = 0;
  while (done < bytes.length) {
    const { bytesWritten } = await disk.write(bytes, done, bytes.length - done, offset + done);
    done += bytesWritten;
  }
}

/** So that the comparison reads the disk and not the memory that was just written. */
async function dropCache(path: string): Promise<void> {
  await tryCommand('blockdev', ['--flushbufs', path]);
}

async function compareChecksums(
  disk: FileHandle,
  writer: SparseWriter,
  reporter: StageReporter,
): Promise<void> {
  const buffer = Buffer.alloc(CHUNK_BYTES);
  for (const [index, expected] of writer.checksums.entries()) {
    const offset = index * CHUNK_BYTES;
    const length = Math.min(CHUNK_BYTES, writer.totalBytes - offset);
    const { bytesRead } = await disk.read(buffer, 0, length, offset);
    if (bytesRead !== length || crc32(buffer.subarray(0, length)) !== expected)
      throw new AppError('IMAGE_DUMP', `the disk differs from the image after byte ${offset}`);
    reporter.progress(offset + length, writer.totalBytes);
  }
}

function roundUp(bytes: number): number {
  return Math.ceil(bytes / SECTOR_BYTES) * SECTOR_BYTES;
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}

function rate(bytes: number, ms: number): string {
  return `${(bytes / 1e6 / (ms / 1000)).toFixed(0)} MB/s`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
