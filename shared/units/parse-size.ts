const MIB_PER_UNIT: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ['k', 1 / 1024],
  ['m', 1],
  ['g', 1024],
  ['t', 1024 * 1024],
]);
/** 8 PiB: above it, bytes are no longer exact in a number. */
const MAX_MIB = 2 ** 33;

/**
 * Reads a size in Ganeti's format: `10G`, `512M`, `1.5T`, `10GiB`; the default unit is MiB. Part of
 * a MiB counts as a whole one; `B` alone is not a unit. Ganeti also rounds up to a multiple of 4
 * MiB, which volume groups need and files do not.
 * @returns MiB; undefined if the text is not a size
 */
export function readSizeMiB(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?|\.\d+)\s*(?:([kmgt])(?:i?b)?)?$/i.exec(text.trim());
  const scale = MIB_PER_UNIT.get((match?.[2] ?? '').toLowerCase());
  const sizeMiB = match && scale !== undefined ? Math.ceil(Number(match[1]) * scale) : 0;
  return sizeMiB > 0 && sizeMiB <= MAX_MIB ? sizeMiB : undefined;
}
