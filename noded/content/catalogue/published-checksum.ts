const SHORTEST_LINE = 64;

/**
 * Finds the checksum of a file in a published list. Lines are those of sha256sum and sha512sum
 * (`HEX NAME`, `HEX *NAME`) or have the algorithm in front (`SHA256 (NAME) = HEX`). Prefers
 * SHA-512. Pure.
 * @returns `sha256:HEX` or `sha512:HEX`; undefined when the file is missing, or listed with
 * different checksums
 */
export function findPublishedChecksum(list: string, fileName: string): string | undefined {
  const found: string[] = [];
  // Does not extract short lines: a list may be a million empty lines.
  for (let start = 0; start < list.length;) {
    const next = list.indexOf('\n', start);
    const end = next === -1 ? list.length : next;
    const isLong = end - start > SHORTEST_LINE + fileName.length;
    if (isLong) found.push(...checksumIn(list.slice(start, end), fileName));
    start = end + 1;
  }
  const strongest = found.some((one) => one.startsWith('sha512:')) ? 'sha512:' : 'sha256:';
  const [first, ...others] = new Set(found.filter((one) => one.startsWith(strongest)));
  return others.length === 0 ? first : undefined;
}

function checksumIn(line: string, fileName: string): string[] {
  const [, hex, name] = /^([0-9a-fA-F]{64,128})\s+\*?(?:\.\/)?(\S+)\r?$/.exec(line) ?? [];
  if (hex !== undefined && name === fileName) return named(hex);
  const [, tagged, value] = /^(?:SHA256|SHA512) \((\S+)\) = ([0-9a-fA-F]+)\r?$/.exec(line) ?? [];
  return value !== undefined && tagged === fileName ? named(value) : [];
}

const ALGORITHMS: Readonly<Record<number, string>> = { 64: 'sha256', 128: 'sha512' };

function named(hex: string): string[] {
  const algorithm = ALGORITHMS[hex.length];
  return algorithm === undefined ? [] : [`${algorithm}:${hex.toLowerCase()}`];
}
