import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { readSizeMiB } from '#shared/units/parse-size.ts';

/**
 * Parses a size in Ganeti's format, as {@link readSizeMiB}.
 * @throws AppError USAGE
 */
export function parseSizeMiB(option: string, text: string): number {
  const sizeMiB = readSizeMiB(text);
  if (sizeMiB !== undefined) return sizeMiB;
  throw new AppError('USAGE', `option ${option}: '${text}' is not a size`, {
    hint: 'Write a number with M, G or T, such as 512M or 10G; without a unit it is MiB',
    details: { option, value: text },
  });
}

/** A smaller number without a unit lacks its unit by mistake: no disk is that small. */
const LEAST_DISK_MIB = 16;

/** Parses the size of a disk, as {@link parseSizeMiB}, in bytes. */
export function parseSizeBytes(option: string, text: string): number {
  const sizeMiB = parseSizeMiB(option, text);
  if (sizeMiB < LEAST_DISK_MIB && /^[\d.]+$/.test(text.trim())) {
    throw new AppError('USAGE', `option ${option}: '${text}' without a unit is ${sizeMiB} MiB`, {
      hint: `Write ${text.trim()}G, or ${text.trim()}M if you mean MiB`,
      details: { option, value: text },
    });
  }
  return sizeMiB * MIB;
}

/** Parses `none`, 0 or a size per second. @throws AppError USAGE */
export function parseDataRate(text: string): number {
  return ['none', '0'].includes(text) ? 0 : parseSizeBytes('--data-rate', text);
}
