import { AppError } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { MIB } from '#shared/units/bytes.ts';

const MIB_PER_UNIT: Readonly<Record<string, number>> = {
  '': 1,
  k: 1 / 1024,
  m: 1,
  g: 1024,
  t: 1024 * 1024,
};
/** 8 PiB: above it, bytes are no longer exact in a number. */
const MAX_MIB = 2 ** 33;

/**
 * A size as Ganeti writes them, in MiB: `10G`, `512M`, `1.5T`, `10GiB`; no unit means MiB. Part of
 * a MiB counts as a whole one; `B` alone is no unit. Ganeti also rounds up to a multiple of 4 MiB,
 * which volume groups need and files do not: here the size is what was asked for.
 * @throws AppError USAGE
 */
export function parseSizeMiB(option: string, text: string): number {
  const match = /^(\d+(?:\.\d+)?|\.\d+)\s*(?:([kmgt])(?:i?b)?)?$/i.exec(text.trim());
  const scale = ownValue(MIB_PER_UNIT, (match?.[2] ?? '').toLowerCase());
  const sizeMiB = match && scale !== undefined ? Math.ceil(Number(match[1]) * scale) : 0;
  if (sizeMiB > 0 && sizeMiB <= MAX_MIB) return sizeMiB;
  throw new AppError('USAGE', `option ${option}: '${text}' is not a size`, {
    hint: 'write a number with M, G or T, such as 512M or 10G; without a unit it is MiB',
    details: { option, value: text },
  });
}

/** A number below this without a unit was meant to have one: no disk is that small. */
const LEAST_DISK_MIB = 16;

/** The size of a disk, as {@link parseSizeMiB}, in bytes. */
export function parseSizeBytes(option: string, text: string): number {
  const sizeMiB = parseSizeMiB(option, text);
  if (sizeMiB < LEAST_DISK_MIB && /^[\d.]+$/.test(text.trim())) {
    throw new AppError('USAGE', `option ${option}: '${text}' without a unit is ${sizeMiB} MiB`, {
      hint: `write ${text.trim()}G, or ${text.trim()}M if you mean MiB`,
      details: { option, value: text },
    });
  }
  return sizeMiB * MIB;
}
