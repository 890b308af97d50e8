import { AppError } from '#shared/errors/app-error.ts';
import type { PaxRecords } from './pax.ts';
import { BLOCK, parseNumber, type TarHeader } from './tar-header.ts';

/**
 * The data segments of a sparse file. GNU tar reads the content length from the map instead of the
 * entry's size. When they differ, it takes following headers for content, or content for headers
 * that were never judged. So a map passes only when it agrees with the size, in the formats that
 * GNU tar writes (GNU tar manual, "Storing Sparse Files").
 */
export interface HoleMap {
  /** Whether the map continues in blocks behind the header. */
  readonly isOpen: boolean;
  /** Whether these blocks count towards the entry's size. */
  readonly isInContent: boolean;
  /** Bytes of content, padding included, of all segments so far. */
  readonly contentBytes: number;
  /** Takes the next block. @throws AppError PACKAGE_INVALID */
  push(block: Buffer): void;
}

const PAX_KEYS = [
  ...['major', 'minor', 'size', 'realsize', 'numblocks'],
  ...['map', 'offset', 'numbytes'],
];
const OLD_STRETCHES = { inHeader: 4, inBlock: 21 };
/** Digits of a number in a map that are exact in JavaScript. */
const MAX_DIGITS = 15;
const NEWLINE = 0x0a;

/**
 * @param block the entry's header
 * @returns null for an entry without a map
 * @throws AppError PACKAGE_INVALID for a map that GNU tar reads differently
 */
export function readHoleMap(
  block: Buffer,
  { type }: TarHeader,
  pax: PaxRecords | null,
): HoleMap | null {
  const has = (key: string): boolean => pax?.has(`GNU.sparse.${key}`) === true;
  const hasPaxMap = PAX_KEYS.some(has);
  const magic = block.toString('latin1', 257, 265);
  if (type === 'S') {
    if (hasPaxMap || magic !== 'ustar  \0') throw badMap('in a header of the wrong kind');
    return new OldMap(block);
  }
  if (!hasPaxMap || pax === null) return null;
  // star's headers have times where ustar has the end of a name.
  const isStar = block[475] === 0 && block[487] === 0x20 && block[499] === 0x20;
  if (!['0', '7'].includes(type) || !magic.startsWith('ustar\0') || isStar)
    throw badMap('in a header of the wrong kind');
  if (Number(textOf(pax, 'major') ?? 0) > 0) return new ContentMap();
  return new PaxMap(pax);
}

/** The map in the header, and in following blocks as long as each is full and announces another. */
class OldMap implements HoleMap {
  readonly isInContent = false;
  isOpen = false;
  contentBytes = 0;

  constructor(header: Buffer) {
    this.#read(header, 386, OLD_STRETCHES.inHeader, 482);
  }

  push(block: Buffer): void {
    this.#read(block, 0, OLD_STRETCHES.inBlock, 504);
  }

  #read(block: Buffer, start: number, stretches: number, extendedAt: number): void {
    this.isOpen = block[extendedAt] !== 0;
    for (let index = 0; index < stretches; index += 1) {
      const at = start + index * 24;
      if (block[at + 12] === 0) {
        if (this.isOpen) throw badMap('that continues after its end');
        return;
      }
      const bytes = parseNumber(block, at + 12, 12);
      if (bytes === null || bytes < 0) throw badMap('with an invalid length');
      this.contentBytes += padded(bytes);
    }
  }
}

/**
 * The map in the pax header: the number of segments, then pairs of offset and length in one list
 * (0.1), or one by one (0.0).
 */
class PaxMap implements HoleMap {
  readonly isInContent = false;
  readonly isOpen = false;
  readonly contentBytes: number;

  constructor(pax: PaxRecords) {
    const list = (key: string): number[] | undefined => textOf(pax, key)?.split(',').map(Number);
    const pairs = list('map');
    const lengths = pairs?.filter((_, index) => index % 2 === 1) ?? list('numbytes');
    const keys = [...pax.keys()];
    const countAt = keys.indexOf('GNU.sparse.numblocks');
    const mapAt = keys.findIndex((key) => /^GNU\.sparse\.(map|offset|numbytes)$/.test(key));
    if (lengths === undefined || countAt < 0 || countAt > mapAt)
      throw badMap('without GNU.sparse.numblocks and the segments in this order');
    if (pairs && (pax.has('GNU.sparse.numbytes') || pax.has('GNU.sparse.offset')))
      throw badMap('that occurs twice');
    if (pairs && pairs.length % 2 !== 0) throw badMap('with half a segment');
    this.contentBytes = lengths.reduce((sum, bytes) => sum + padded(bytes), 0);
  }

  push(): void {
    throw badMap('that continues after its end');
  }
}

/**
 * The map at the beginning of the content (1.0): a line with the number of segments, and two lines
 * for each.
 */
class ContentMap implements HoleMap {
  readonly isInContent = true;
  contentBytes = 0;
  #line = '';
  #lines = 0;
  /** Known after the first line. */
  #linesInAll = Infinity;

  get isOpen(): boolean {
    return this.#lines < this.#linesInAll;
  }

  push(block: Buffer): void {
    for (let at = 0; at < BLOCK && this.isOpen; at += 1) {
      const byte = block[at] ?? 0;
      if (byte === NEWLINE) this.#takeLine();
      else if (byte < 0x30 || byte > 0x39 || this.#line.length >= MAX_DIGITS)
        throw badMap('with an invalid number');
      else this.#line += String.fromCharCode(byte);
    }
  }

  #takeLine(): void {
    if (this.#line === '') throw badMap('with an invalid number');
    const value = Number(this.#line);
    this.#line = '';
    this.#lines += 1;
    if (this.#lines === 1) this.#linesInAll = 1 + 2 * value;
    else if (this.#lines % 2 === 1) this.contentBytes += padded(value);
  }
}

/** Returns the text of a record, which judge-entry.ts has verified to be numeric. */
function textOf(pax: PaxRecords, key: string): string | undefined {
  return pax.get(`GNU.sparse.${key}`)?.toString('latin1');
}

function padded(bytes: number): number {
  return Math.ceil(bytes / BLOCK) * BLOCK;
}

export function badMap(what: string): AppError {
  return new AppError('PACKAGE_INVALID', `not a usable tar.gz archive: a sparse map ${what}`, {
    hint: 'Create it with: tar -C DIR -czf x.tar.gz .',
  });
}
