import { availableParallelism } from 'node:os';
import { AppError } from '#shared/errors/app-error.ts';
import type { ImageFormatName } from '#shared/contract/image-formats.ts';
import { type ImageJail, JAILED_DISK, JAILED_IMAGE } from './image-jail.ts';

/** QEMU's name for what image and disk are; files in tests. */
export type ImageDriver = 'host_device' | 'file';

export interface Comparison {
  readonly jail: ImageJail;
  readonly format: ImageFormatName;
  /** Of the image, a multiple of 512. The rest of a large disk is not read. */
  readonly sizeBytes: number;
  readonly driver: ImageDriver;
}

/** Parts start at a multiple of it, so that no cluster of any format is read twice. */
const PART_ALIGNMENT_BYTES = 64 * 1024 * 1024;
/**
 * qemu-img compares with one thread; more parts than processors, since data is rarely spread
 * evenly.
 */
const PARTS_PER_PROCESSOR = 2;

interface Part {
  readonly offset: number;
  readonly size: number;
}

/**
 * Reads image and disk again and compares them, on all processors.
 * @throws AppError IMAGE_DUMP when they differ
 */
export async function compareImage(comparison: Comparison): Promise<void> {
  const parts = planParts(comparison.sizeBytes, availableParallelism() * PARTS_PER_PROCESSOR);
  await Promise.all(parts.map((part) => comparePart(comparison, part)));
}

/** At most `count` parts that cover the bytes; a small image is one. Pure. */
export function planParts(sizeBytes: number, count: number): readonly Part[] {
  const partBytes = Math.ceil(sizeBytes / count / PART_ALIGNMENT_BYTES) * PART_ALIGNMENT_BYTES;
  const parts: Part[] = [];
  for (let offset = 0; offset < sizeBytes; offset += partBytes) {
    parts.push({ offset, size: Math.min(partBytes, sizeBytes - offset) });
  }
  return parts;
}

async function comparePart({ jail, format, driver }: Comparison, part: Part): Promise<void> {
  const image = { driver: format, file: { driver, filename: JAILED_IMAGE } };
  const disk = { driver, filename: JAILED_DISK };
  const window = (file: object): string =>
    `json:${JSON.stringify({ driver: 'raw', ...part, file })}`;
  const result = await jail.run('qemu-img', ['compare', '-T', 'none', window(image), window(disk)]);
  if (result.status === 0) return;
  const reason = (result.stdout + result.stderr).trim().split('\n').at(-1);
  throw new AppError(
    'IMAGE_DUMP',
    `the disk differs from the image, in the ${part.size} bytes from ${part.offset}: ${reason}`,
  );
}
