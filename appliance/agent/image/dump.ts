import { open, type FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { AppError } from '#shared/errors/app-error.ts';
import { lastLineOf } from '#shared/text/lines.ts';
import { runCommand, tryCommand } from '../process/command.ts';
import type { StageReporter } from '../report/stage.ts';
import { explainDifference, type ImageDriver, planComparison } from './compare.ts';
import { decompress } from './decompress.ts';
import {
  describeImage,
  type ExaminedImage,
  examineImage,
  type ExamineOptions,
  FETCH_AGAIN,
} from './examine.ts';
import { ImageJail, JAILED_DISK, JAILED_IMAGE } from './image-jail.ts';
import { CHUNK_BYTES, SparseWriter } from './sparse-writer.ts';

const SECTOR_BYTES = 512;

export interface DumpOptions extends Omit<ExamineOptions, 'jail'> {
  readonly targetPath: string;
  /** True for a new disk, which reads as zeros, so that it need not be cleared. */
  readonly isTargetBlank: boolean;
  readonly driver: ImageDriver;
}

/**
 * Writes an image of any known format to a disk, sparsely, and compares the disk with its source.
 * @returns a sentence with format and sizes
 * @throws AppError of `examineImage` before the first byte is written, IMAGE_INVALID, IMAGE_DUMP
 */
export async function dumpImage(options: DumpOptions): Promise<string> {
  await using jail = await ImageJail.open(options.sourcePath, options.targetPath);
  const image = await examineImage({ ...options, jail });
  return image.kind === 'plain'
    ? await dumpWithQemuImg(options, jail, image)
    : await dumpCompressed(options, jail, image);
}

/**
 * Clears the disk. A punched hole, unlike a discard, is defined to read as zeros, regardless of the
 * host's handling of discards; the space is freed where the host can.
 * @returns whether the disk reads as zeros now
 */
async function clear(options: DumpOptions): Promise<boolean> {
  if (options.isTargetBlank) return true;
  const { targetPath, targetSizeBytes } = options;
  const args = ['--punch-hole', '--offset', '0', '--length', String(targetSizeBytes), targetPath];
  return (await tryCommand('fallocate', args)).status === 0;
}

const COPIED = 'copied';
/** Takes a format, an option or an empty text, and the arguments of the comparison behind it. */
const COPY = `
qemu-img convert -p -f "$1" -O raw -n -W -S 64k -t none -T none $2 ${JAILED_IMAGE} ${JAILED_DISK} || exit
shift 2
echo ${COPIED}`;

/** Copies and compares in one shell: entering the jail takes as long as starting qemu-img twice. */
async function dumpWithQemuImg(
  options: DumpOptions,
  jail: ImageJail,
  image: Extract<ExaminedImage, { kind: 'plain' }>,
): Promise<string> {
  const { reporter, driver } = options;
  const { format, sizeBytes } = image;
  const comparison = planComparison({ format, sizeBytes: roundUp(sizeBytes), driver });
  const startedAt = performance.now();
  const isZeroed = await clear(options);
  let said = '';
  let copiedMs: number | null = null;
  const result = await jail.run(
    '/bin/sh',
    [
      ...['-c', `${COPY}\n${comparison.script}`, 'sh'],
      ...[format, isZeroed ? '--target-is-zero' : '', ...comparison.args],
    ],
    {
      onStdout: (text) => {
        const percent = /([0-9.]{1,9})\/100%/.exec(text)?.[1];
        if (percent !== undefined)
          reporter.progress((Number(percent) / 100) * sizeBytes, sizeBytes);
        // Chunks end anywhere.
        said += text;
        if (said.includes(COPIED)) copiedMs ??= performance.now() - startedAt;
        said = said.slice(-COPIED.length);
      },
    },
  );
  const [, afterCopy] = result.stdout.split(`${COPIED}\n`);
  if (copiedMs === null || afterCopy === undefined)
    throw await dumpFailure(jail, image, result.stderr);
  const difference = explainDifference({ ...result, stdout: afterCopy });
  if (difference !== null) throw difference;
  return `${describeImage(image)} at ${rate(sizeBytes, copiedMs)}, compared in ${seconds(performance.now() - startedAt - copiedMs)}`;
}

/**
 * Tells an unreadable image from an unwritable disk by reading the whole image again, without the
 * disk. The messages of qemu-img are the same for both.
 */
async function dumpFailure(
  jail: ImageJail,
  { format, sizeBytes }: Extract<ExaminedImage, { kind: 'plain' }>,
  stderr: string,
): Promise<AppError> {
  const nowhere = `driver=null-co,size=${roundUp(sizeBytes)}`;
  const read = await jail.run('qemu-img', [
    ...['convert', '-f', format, '-n', '-W', '-T', 'none'],
    ...['--target-image-opts', JAILED_IMAGE, nowhere],
  ]);
  if (read.status !== 0)
    return new AppError('IMAGE_INVALID', `cannot read the image: ${lastLineOf(read.stderr)}`, {
      hint: FETCH_AGAIN,
    });
  return new AppError('IMAGE_DUMP', `cannot write to the disk: ${lastLineOf(stderr)}`, {
    hint: 'Check the file or device of the disk on the node, its free space and the kernel log (dmesg).',
  });
}

async function dumpCompressed(
  options: DumpOptions,
  jail: ImageJail,
  image: Extract<ExaminedImage, { kind: 'compressed' }>,
): Promise<string> {
  const { reporter, targetPath } = options;
  const { compression, sizeBytes } = image;
  const source = { path: options.sourcePath, sizeBytes: options.fileSizeBytes };
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
  return `${describeImage(image)} (${writer.writtenBytes} nonzero) at ${rate(sizeBytes, copiedMs)}, compared in ${seconds(performance.now() - startedAt - copiedMs)}`;
}

async function writeFully(disk: FileHandle, bytes: Buffer, offset: number): Promise<void> {
  let done = 0;
  while (done < bytes.length) {
    const { bytesWritten } = await disk.write(bytes, done, bytes.length - done, offset + done);
    done += bytesWritten;
  }
}

/** Makes the comparison read the disk instead of the page cache. */
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

function rate(bytes: number, ms: number): string {
  return `${(bytes / 1e6 / (ms / 1000)).toFixed(0)} MB/s`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
