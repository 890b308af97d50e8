import { open, type FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { AppError } from '#shared/errors/app-error.ts';
import { runCommand, tryCommand } from '../process/command.ts';
import type { StageReporter } from '../report/stage.ts';
import { compareImage, type ImageDriver } from './compare.ts';
import { decompress } from './decompress.ts';
import {
  type Compression,
  type ContainerFormat,
  describeFormat,
  HEADER_BYTES,
  recognizeImage,
  vdiMinimumBytes,
} from './format.ts';
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
  readonly driver: ImageDriver;
  readonly reporter: StageReporter;
}

/**
 * Writes an image of any known format to a disk: sparse, and compared with its source afterwards.
 * @returns a sentence with format and sizes
 * @throws AppError IMAGE_TOO_LARGE and IMAGE_BACKING_FILE before the first byte is written, IMAGE_INVALID, IMAGE_DUMP
 */
export async function dumpImage(options: DumpOptions): Promise<string> {
  const head = await readHead(options.sourcePath, options.fileSizeBytes);
  const format = recognizeImage(head);
  const name = describeFormat(format);
  switch (format.kind) {
    case 'unsupported':
      throw new AppError('IMAGE_INVALID', `the image is ${format.what}, which is not supported`, {
        hint: 'convert it with qemu-img convert -O qcow2',
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
      return await dumpWithQemuImg(options, 'raw');
    case 'compressed':
      return await dumpCompressed(options, format.compression);
  }
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
 * Throws away what the disk held. Punching a hole, unlike discarding, is defined to read as zeros afterwards, whatever the host
 * makes of discards; where the host can, it frees the space too.
 * @returns whether the disk reads as zeros now
 */
async function clear(options: DumpOptions): Promise<boolean> {
  if (options.isTargetBlank) return true;
  const { targetPath, targetSizeBytes } = options;
  const args = ['--punch-hole', '--offset', '0', '--length', String(targetSizeBytes), targetPath];
  return (await tryCommand('fallocate', args)).status === 0;
}

async function dumpWithQemuImg(
  options: DumpOptions,
  format: ContainerFormat | 'raw',
): Promise<string> {
  const { sourcePath, targetPath, reporter } = options;
  const sizeBytes =
    format === 'raw' ? options.fileSizeBytes : await virtualSize(sourcePath, format);
  refuseLarger(sizeBytes, options.targetSizeBytes);
  if (format !== 'raw') await checkTables(sourcePath, format);
  const startedAt = performance.now();
  const isZeroed = await clear(options);
  const args = [
    'convert',
    '-p',
    '-f',
    format,
    '-O',
    'raw',
    '-n',
    '-W',
    '-S',
    '64k',
    '-t',
    'none',
    '-T',
    'none',
  ];
  if (isZeroed) args.push('--target-is-zero');
  const copied = await tryCommand('qemu-img', [...args, sourcePath, targetPath], {
    onStdout: (text) => {
      const percent = /([0-9.]{1,9})\/100%/.exec(text)?.[1];
      if (percent !== undefined) reporter.progress((Number(percent) / 100) * sizeBytes, sizeBytes);
    },
  });
  if (copied.status !== 0) throw dumpFailure(copied.stderr);
  const copiedMs = performance.now() - startedAt;
  await compareImage({
    source: { path: sourcePath, format },
    targetPath,
    sizeBytes: roundUp(sizeBytes),
    driver: options.driver,
  });
  return `${format}, ${sizeBytes} bytes at ${rate(sizeBytes, copiedMs)}, compared in ${seconds(performance.now() - startedAt - copiedMs)}`;
}

async function virtualSize(path: string, format: ContainerFormat): Promise<number> {
  const result = await tryCommand('qemu-img', ['info', '--output=json', '-f', format, path]);
  if (result.status !== 0) {
    throw new AppError(
      'IMAGE_INVALID',
      `the ${format} image cannot be opened: ${lastLine(result.stderr)}`,
    );
  }
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

/** Exit status of `qemu-img check`: 2 is damage; 3 (unused space) does no harm, 63 means that the format has no check. */
const CHECK_DAMAGED = 2;

/**
 * Looks at the image's own tables: QEMU reads zeros where a cut file has nothing, and would not complain.
 * @throws AppError IMAGE_INVALID
 */
async function checkTables(path: string, format: ContainerFormat): Promise<void> {
  const result = await tryCommand('qemu-img', ['check', '-q', '-f', format, path]);
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
  const sizeBytes = await measure(source, compression, reporter);
  refuseLarger(sizeBytes, targetSizeBytes);
  const startedAt = performance.now();
  if (!(await clear(options))) await runCommand('blkdiscard', ['-f', '-z', targetPath]);
  await using disk = await open(targetPath, 'r+');
  const writer = new SparseWriter({ write: (bytes, offset) => writeFully(disk, bytes, offset) });
  for await (const chunk of decompress(source, compression)) {
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

/** Decompresses to nowhere: the size, and the proof that the stream is whole, before the disk is touched. */
async function measure(
  source: { path: string; sizeBytes: number },
  compression: Compression,
  reporter: StageReporter,
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
  for await (const chunk of decompress(counted, compression)) {
    if (head.length < HEADER_BYTES)
      head = Buffer.concat([head, chunk.subarray(0, HEADER_BYTES - head.length)]);
    sizeBytes += chunk.length;
  }
  const inner = recognizeImage(head);
  if (inner.kind !== 'raw') {
    throw new AppError(
      'IMAGE_INVALID',
      `the ${compression} file holds ${describeFormat(inner)}, not a raw disk`,
      {
        hint: 'decompress it first: only raw images may be compressed as a whole',
      },
    );
  }
  if (sizeBytes === 0) throw new AppError('IMAGE_INVALID', `the ${compression} file is empty`);
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
