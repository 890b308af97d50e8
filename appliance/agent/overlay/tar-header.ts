import { AppError } from '#shared/errors/app-error.ts';

export const BLOCK = 512;

/**
 * One header block of tar, its numbers parsed. Names are bytes, since their encoding is unknown.
 */
export interface TarHeader {
  /** `0`, `5`, `x` …; NUL is given as `0`. */
  readonly type: string;
  readonly name: Buffer;
  readonly linkName: Buffer;
  readonly sizeBytes: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

/** Largest id of chown(2); the next value means "leave it". */
export const MAX_ID = 2 ** 32 - 2;

/** Name, offset, length, minimum and maximum of each numeric field. */
const numbers = [
  ['mode', 100, 8, -(2 ** 31), 2 ** 32],
  ['uid', 108, 8, 0, MAX_ID],
  ['gid', 116, 8, 0, MAX_ID],
  ['mtime', 136, 12, -(2 ** 52), 2 ** 52],
] as const;

/** The checksum is wrong: damaged, or not a header. */
export class DamagedHeader extends AppError {
  constructor() {
    super('PACKAGE_INVALID', 'not a usable tar.gz archive: a damaged header', {
      hint: 'Create it with: tar -C DIR -czf x.tar.gz .',
    });
  }
}

export function isZeroBlock(block: Buffer): boolean {
  for (let index = 0; index < BLOCK; index += 1) if (block[index] !== 0) return false;
  return true;
}

/**
 * Parses a header. Formats: POSIX.1-2017 ustar, GNU tar manual "Tar internals".
 * @throws DamagedHeader, AppError PACKAGE_INVALID that names an entry with invalid numbers
 */
export function parseTarHeader(block: Buffer): TarHeader {
  verifyChecksum(block);
  const name = headerName(block);
  const [mode, uid, gid] = numbers.map(([what, start, length, smallest, largest]) => {
    const value = parseNumber(block, start, length);
    if (value !== null && value >= smallest && value <= largest) return value;
    throw badNumber(name, what, cutAtNul(block.subarray(start, start + length)));
  }) as [number, number, number]; // one for each of `numbers`
  const sizeBytes = parseNumber(block, 124, 12);
  if (sizeBytes === null || sizeBytes < 0 || sizeBytes > Number.MAX_SAFE_INTEGER)
    throw badNumber(name, 'size', cutAtNul(block.subarray(124, 136)));
  const type = block[156] === 0 ? '0' : String.fromCharCode(block[156] ?? 0);
  const linkName = cutAtNul(block.subarray(157, 257));
  return { type, name, linkName, sizeBytes, mode, uid, gid };
}

export function badNumber(name: Buffer, what: string, value: Buffer): AppError {
  return new AppError(
    'PACKAGE_INVALID',
    `entry ${showName(name)}: its ${what} ${showName(value)} is not a valid number`,
  );
}

/** Shows the bytes of a name: invalid UTF-8 as `�`, and long names shortened. */
export function showName(name: Buffer): string {
  const MAX_SHOWN = 200;
  const text = JSON.stringify(name.toString('utf8', 0, MAX_SHOWN));
  return name.length > MAX_SHOWN ? `${text.slice(0, -1)}…" (${name.length} bytes)` : text;
}

export function cutAtNul(field: Buffer): Buffer {
  const end = field.indexOf(0);
  return end < 0 ? field : field.subarray(0, end);
}

function headerName(block: Buffer): Buffer {
  const name = cutAtNul(block.subarray(0, 100));
  // GNU's magic ("ustar ") uses the prefix field for other things.
  const isPosix = block.toString('latin1', 257, 263) === 'ustar\0';
  if (!isPosix || block[345] === 0) return name;
  return Buffer.concat([cutAtNul(block.subarray(345, 500)), Buffer.from('/'), name]);
}

/**
 * Verifies the sum of all bytes, with blanks in its own field. Some writers summed signed bytes.
 */
function verifyChecksum(block: Buffer): void {
  const said = parseNumber(block, 148, 8);
  let ownBytes = 0;
  for (let index = 148; index < 156; index += 1) ownBytes += block[index] ?? 0;
  if (said === sumBytes(block) - ownBytes + 8 * 0x20) return;
  const signed = block.reduce((sum, byte, index) => {
    if (index >= 148 && index < 156) return sum + 0x20;
    return sum + (byte > 0x7f ? byte - 0x100 : byte);
  }, 0);
  if (said === signed) return;
  throw new DamagedHeader();
}

const words = new Uint32Array(BLOCK / 4);
const wordBytes = new Uint8Array(words.buffer);

/**
 * Sums four bytes at a time, as two 16-bit sums that a block's bytes cannot overflow. Byte by byte,
 * the sum took half of the time for a header.
 */
function sumBytes(block: Buffer): number {
  wordBytes.set(block);
  let sums = 0;
  for (let index = 0; index < BLOCK / 4; index += 1) {
    const word = words[index] ?? 0;
    sums = (sums + (word & 0x00ff00ff) + ((word >>> 8) & 0x00ff00ff)) | 0;
  }
  return (sums & 0xffff) + (sums >>> 16);
}

/**
 * Parses octal text, or base 256 when the first bit is set (GNU, for larger numbers).
 * @returns null for anything else
 */
export function parseNumber(block: Buffer, start: number, length: number): number | null {
  const first = block[start] ?? 0;
  if (first === 0x80 || first === 0xff) return parseBase256(block, start, length);
  let at = start;
  const end = start + length;
  while (at < end && block[at] === 0x20) at += 1;
  // GNU tar skips a NUL before digits: both readers must agree.
  if (block[at] === 0) return isNulUntil(block, at, end) ? 0 : null;
  let value = 0;
  for (; at < end; at += 1) {
    const digit = (block[at] ?? 0) - 0x30;
    if (digit < 0 || digit > 7) break;
    value = value * 8 + digit;
  }
  for (; at < end && block[at] !== 0; at += 1) if (block[at] !== 0x20) return null;
  return value;
}

function isNulUntil(block: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (block[at] !== 0) return false;
  return true;
}

/** Parses big-endian two's complement; the first byte is the sign. */
function parseBase256(block: Buffer, start: number, length: number): number | null {
  let value = block[start] === 0xff ? -1 : 0;
  for (let at = start + 1; at < start + length; at += 1) {
    value = value * 256 + (block[at] ?? 0);
    if (!Number.isSafeInteger(value)) return null;
  }
  return value;
}
