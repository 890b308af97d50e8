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

/** Lines that a message has of what differs. */
const MAX_REASONS = 4;

interface Part {
  readonly offset: number;
  readonly size: number;
}

/**
 * The arguments are three for each part: its name, image, disk. Prints what is wrong with which,
 * and ends as one that went wrong did.
 */
const COMPARE_PARTS = `
part() {
  said=$(qemu-img compare -T none "$2" "$3" 2>&1) || { ended=$?; echo "$1: $said"; return $ended; }
}
jobs=
while [ $# -gt 0 ]; do
  part "$1" "$2" "$3" &
  jobs="$jobs $!"
  shift 3
done
status=0
for job in $jobs; do wait "$job" || status=$?; done
exit $status`;

/**
 * Reads image and disk again and compares them, on all processors.
 * @throws AppError IMAGE_DUMP when they differ; what ImageJail.run throws
 */
export async function compareImage(comparison: Comparison): Promise<void> {
  const parts = planParts(comparison.sizeBytes, availableParallelism() * PARTS_PER_PROCESSOR);
  const args = parts.flatMap((part) => planComparison(comparison, part));
  // One shell starts them all: to get into the jail takes longer than to start qemu-img.
  const result = await comparison.jail.run('/bin/sh', ['-c', COMPARE_PARTS, 'sh', ...args]);
  if (result.status === 0) return;
  const reason = (result.stdout + result.stderr).trim().split('\n').slice(0, MAX_REASONS);
  throw new AppError('IMAGE_DUMP', `the disk differs from the image, ${reason.join('; ')}`);
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

function planComparison({ format, driver }: Comparison, part: Part): readonly string[] {
  const image = { driver: format, file: { driver, filename: JAILED_IMAGE } };
  const disk = { driver, filename: JAILED_DISK };
  const window = (file: object): string =>
    `json:${JSON.stringify({ driver: 'raw', ...part, file })}`;
  return [`in the ${part.size} bytes from ${part.offset}`, window(image), window(disk)];
}
