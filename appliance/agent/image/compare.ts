import { availableParallelism } from 'node:os';
import { AppError } from '#shared/errors/app-error.ts';
import type { ImageFormatName } from '#shared/contract/image-formats.ts';
import type { CommandResult } from '../process/command.ts';
import { JAILED_DISK, JAILED_IMAGE } from './image-jail.ts';

/** QEMU's driver for image and disk; files in tests. */
export type ImageDriver = 'host_device' | 'file';

export interface Comparison {
  readonly format: ImageFormatName;
  /** Size of the image, a multiple of 512. The rest of a large disk is not read. */
  readonly sizeBytes: number;
  readonly driver: ImageDriver;
}

/** Alignment of parts, so that no cluster of any format is read twice. */
const PART_ALIGNMENT_BYTES = 64 * 1024 * 1024;
/**
 * qemu-img compares with one thread. More parts than processors balance uneven data. A single
 * processor does not gain from two processes.
 */
function countParts(processors: number): number {
  return processors === 1 ? 1 : 2 * processors;
}

const MAX_REASONS = 4;

interface Part {
  readonly offset: number;
  readonly size: number;
}

/**
 * Takes three arguments for each part: its name, image and disk. Prints the faulty parts and exits
 * with the status of one of them.
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
 * Returns a shell script that compares image and disk on all processors, and its arguments. One
 * shell starts all processes: entering the jail takes longer than starting qemu-img.
 * `explainDifference` interprets its result.
 */
export function planComparison({ format, driver, sizeBytes }: Comparison): {
  readonly script: string;
  readonly args: readonly string[];
} {
  const parts = planParts(sizeBytes, countParts(availableParallelism()));
  const args = parts.flatMap((part) => [
    `in the ${part.size} bytes from offset ${part.offset}`,
    windowOf({ driver: format, file: { driver, filename: JAILED_IMAGE } }, part),
    windowOf({ driver, filename: JAILED_DISK }, part),
  ]);
  return { script: COMPARE_PARTS, args };
}

/** @returns null when the disk equals the image */
export function explainDifference({ status, stdout, stderr }: CommandResult): AppError | null {
  if (status === 0) return null;
  const reason = (stdout + stderr).trim().split('\n').slice(0, MAX_REASONS);
  return new AppError('IMAGE_DUMP', `the disk differs from the image: ${reason.join('; ')}`);
}

/** Splits the bytes into at most `count` parts. A small image is one part. Pure. */
export function planParts(sizeBytes: number, count: number): readonly Part[] {
  const partBytes = Math.ceil(sizeBytes / count / PART_ALIGNMENT_BYTES) * PART_ALIGNMENT_BYTES;
  const parts: Part[] = [];
  for (let offset = 0; offset < sizeBytes; offset += partBytes) {
    parts.push({ offset, size: Math.min(partBytes, sizeBytes - offset) });
  }
  return parts;
}

function windowOf(file: object, part: Part): string {
  return `json:${JSON.stringify({ driver: 'raw', ...part, file })}`;
}
