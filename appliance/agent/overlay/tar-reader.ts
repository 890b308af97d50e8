import { AppError } from '#shared/errors/app-error.ts';
import { ByteSource } from './byte-source.ts';
import { parsePax, type PaxRecords } from './pax.ts';

/** Everything that a tar entry can be, as far as it can be put on a disk; the rest is `special`. */
export type TarEntryType = 'file' | 'directory' | 'symlink' | 'hardlink' | 'special';

export interface TarEntry {
  /** As in the archive, with all long-name extensions applied. Not trusted. */
  readonly path: string;
  readonly type: TarEntryType;
  /** For `special`: what it is. */
  readonly typeName: string;
  readonly linkTarget: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly modifiedAtMs: number;
  readonly sizeBytes: number;
  /** Extended attributes by name, bytes as they were. */
  readonly xattrs: ReadonlyMap<string, Buffer>;
  /** Stretches of data of a sparse file, or null: then the content is the whole file. */
  readonly sparse: readonly SparseExtent[] | null;
  /** The bytes stored in the archive: all of the file, or a sparse file's stretches back to back. Read it before the next entry. */
  readonly content: () => AsyncIterable<Buffer>;
}

export interface SparseExtent {
  readonly offset: number;
  readonly length: number;
}

const BLOCK = 512;
/** pax headers and GNU long names are read to memory. */
const MAX_META_BYTES = 4 * 1024 * 1024;
const MAX_SPARSE_EXTENTS = 1_000_000;

const typeNames: Readonly<Record<string, string>> = {
  '3': 'character device',
  '4': 'block device',
  '6': 'named pipe',
  V: 'volume label',
  M: 'continuation of a multi-volume archive',
};

/**
 * Reads tar: ustar, GNU (long names, sparse files) and pax (long names, times, binary extended attributes, sparse files 0.0, 0.1, 1.0).
 * Formats: POSIX.1-2017 pax, GNU tar manual "Tar internals".
 * @throws AppError PACKAGE_INVALID where the bytes are not a tar archive or end too soon
 */
export async function* readTar(input: AsyncIterable<Buffer>): AsyncGenerator<TarEntry> {
  const source = new ByteSource(input, 'the archive ends in the middle of an entry');
  const globals: PaxRecords = new Map();
  let pax: PaxRecords = new Map();
  let longName: string | null = null;
  let longLink: string | null = null;
  let isFirst = true;
  for (;;) {
    const header = await source.readOrEnd(BLOCK);
    if (header === null || isZero(header)) {
      if (header === null && isFirst) throw invalid('the archive is empty');
      if (header === null) throw invalid('the archive ends without an end mark');
      await source.drain();
      return;
    }
    verifyChecksum(header, isFirst);
    isFirst = false;
    const type = String.fromCharCode(header[156] ?? 0);
    const storedBytes = parseNumber(header, 124, 12, 'size');
    if (type === 'x' || type === 'g' || type === 'L' || type === 'K') {
      const meta = await readMeta(source, storedBytes);
      if (type === 'x') pax = parsePax(meta);
      else if (type === 'g') for (const [key, value] of parsePax(meta)) globals.set(key, value);
      else if (type === 'L') longName = cutAtNul(meta).toString();
      else longLink = cutAtNul(meta).toString();
      continue;
    }
    yield* readEntry(source, header, new Map([...globals, ...pax]), {
      type,
      longName,
      longLink,
      storedBytes,
    });
    pax = new Map();
    longName = null;
    longLink = null;
  }
}

interface HeaderContext {
  readonly type: string;
  readonly longName: string | null;
  readonly longLink: string | null;
  readonly storedBytes: number;
}

async function* readEntry(
  source: ByteSource,
  header: Buffer,
  pax: PaxRecords,
  context: HeaderContext,
): AsyncGenerator<TarEntry> {
  const text = (key: string): string | undefined => pax.get(key)?.toString();
  const numeric = (key: string, otherwise: () => number): number => {
    const value = text(key);
    return value === undefined ? otherwise() : toFinite(Number(value), key);
  };
  const { type } = context;
  const kind = entryType(type, headerPath(header));
  const hasContent = kind === 'file' || kind === 'special';
  let remaining = hasContent ? numeric('size', () => context.storedBytes) : 0;
  const skipBytes = hasContent ? remaining : context.storedBytes;
  const padding = (BLOCK - (skipBytes % BLOCK)) % BLOCK;
  let realSize = remaining;
  let sparse: SparseExtent[] | null = null;
  if (type === 'S') {
    sparse = await readGnuSparseMap(source, header);
    realSize = parseNumber(header, 483, 12, 'real size');
  } else if (pax.has('GNU.sparse.major')) {
    const map = await readPaxSparseMap(source);
    sparse = map.extents;
    remaining -= map.consumedBytes;
    realSize = numeric('GNU.sparse.realsize', () => realSize);
  } else if (pax.has('GNU.sparse.map') || pax.has('GNU.sparse.offset')) {
    sparse = parseSparseList(text('GNU.sparse.map') ?? '');
    realSize = numeric('GNU.sparse.size', () => realSize);
  }
  if (sparse) checkSparse(sparse, remaining, realSize);
  if (!hasContent) await source.skip(skipBytes);
  yield {
    path: text('GNU.sparse.name') ?? text('path') ?? context.longName ?? headerPath(header),
    type: kind,
    typeName: typeNames[type] ?? `entry of type ${JSON.stringify(type)}`,
    linkTarget:
      text('linkpath') ?? context.longLink ?? cutAtNul(header.subarray(157, 257)).toString(),
    mode: parseNumber(header, 100, 8, 'mode') & 0o7777,
    uid: numeric('uid', () => parseNumber(header, 108, 8, 'uid')),
    gid: numeric('gid', () => parseNumber(header, 116, 8, 'gid')),
    modifiedAtMs: numeric('mtime', () => parseNumber(header, 136, 12, 'mtime')) * 1000,
    sizeBytes: realSize,
    xattrs: collectXattrs(pax),
    sparse,
    content: async function* () {
      while (remaining > 0) {
        const chunk = await source.readSome(remaining);
        remaining -= chunk.length;
        yield chunk;
      }
    },
  };
  await source.skip(remaining);
  await source.skip(padding);
}

function entryType(type: string, path: string): TarEntryType {
  // Archives older than ustar mark a directory by its name only.
  if (type === '0' || type === '\0' || type === '7' || type === 'S')
    return path.endsWith('/') && type !== 'S' ? 'directory' : 'file';
  if (type === '5' || type === 'D') return 'directory';
  if (type === '2') return 'symlink';
  if (type === '1') return 'hardlink';
  return 'special';
}

function collectXattrs(pax: PaxRecords): Map<string, Buffer> {
  const prefix = 'SCHILY.xattr.';
  const found = new Map<string, Buffer>();
  for (const [key, value] of pax) {
    if (key.startsWith(prefix)) found.set(key.slice(prefix.length), value);
  }
  return found;
}

async function readMeta(source: ByteSource, sizeBytes: number): Promise<Buffer> {
  if (sizeBytes > MAX_META_BYTES) throw invalid(`a header of ${sizeBytes} bytes`);
  const meta = await source.read(sizeBytes);
  await source.skip((BLOCK - (sizeBytes % BLOCK)) % BLOCK);
  return meta;
}

/** Old GNU format: four extents in the header, 21 in each extension block. */
async function readGnuSparseMap(source: ByteSource, header: Buffer): Promise<SparseExtent[]> {
  const extents: SparseExtent[] = [];
  const collect = (block: Buffer, start: number, count: number): void => {
    for (let index = 0; index < count; index += 1) {
      const at = start + index * 24;
      if (block[at] === 0) return;
      extents.push({
        offset: parseNumber(block, at, 12, 'sparse offset'),
        length: parseNumber(block, at + 12, 12, 'sparse length'),
      });
    }
  };
  collect(header, 386, 4);
  let isExtended = header[482] !== 0;
  while (isExtended) {
    if (extents.length > MAX_SPARSE_EXTENTS) throw invalid('too many sparse extents');
    const block = await source.read(BLOCK);
    collect(block, 0, 21);
    isExtended = block[504] !== 0;
  }
  return extents;
}

/** pax format 1.0: decimal numbers, one a line, before the content, padded to a block. */
async function readPaxSparseMap(
  source: ByteSource,
): Promise<{ extents: SparseExtent[]; consumedBytes: number }> {
  let text = '';
  let consumedBytes = 0;
  const more = async (): Promise<void> => {
    text += (await source.read(BLOCK)).toString('latin1');
    consumedBytes += BLOCK;
    if (consumedBytes > MAX_META_BYTES) throw invalid('a sparse map that does not end');
  };
  const lines = (): string[] => text.split('\n').slice(0, -1);
  await more();
  while (lines().length === 0) await more();
  const count = toFinite(Number(lines()[0]), 'sparse map');
  if (count > MAX_SPARSE_EXTENTS) throw invalid('too many sparse extents');
  while (lines().length < 1 + count * 2) await more();
  const numbers = lines().slice(1, 1 + count * 2);
  return { extents: parseSparseList(numbers.join(',')), consumedBytes };
}

function parseSparseList(text: string): SparseExtent[] {
  const numbers =
    text === '' ? [] : text.split(',').map((part) => toFinite(Number(part), 'sparse map'));
  if (numbers.length % 2 !== 0) throw invalid('a sparse map of odd length');
  const extents: SparseExtent[] = [];
  for (let index = 0; index < numbers.length; index += 2)
    extents.push({ offset: numbers[index] ?? 0, length: numbers[index + 1] ?? 0 });
  return extents;
}

function checkSparse(
  extents: readonly SparseExtent[],
  storedBytes: number,
  realSize: number,
): void {
  let end = 0;
  let total = 0;
  for (const { offset, length } of extents) {
    if (offset < end || offset + length > realSize) throw invalid('a sparse map out of order');
    end = offset + length;
    total += length;
  }
  if (total !== storedBytes) throw invalid('a sparse map that does not fit its content');
}

function headerPath(header: Buffer): string {
  const name = cutAtNul(header.subarray(0, 100)).toString();
  // GNU's magic ("ustar  ") uses the prefix field for other things.
  const isPosix = header.subarray(257, 263).equals(Buffer.from('ustar\0'));
  const prefix = isPosix ? cutAtNul(header.subarray(345, 500)).toString() : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

function verifyChecksum(header: Buffer, isFirst: boolean): void {
  let sum = 0;
  for (const [index, byte] of header.entries()) sum += index >= 148 && index < 156 ? 32 : byte;
  if (sum === parseNumber(header, 148, 8, 'checksum')) return;
  throw invalid(isFirst ? 'it does not hold a tar archive' : 'a header with a wrong checksum');
}

/** Octal text, or base 256 where the first bit is set (GNU; for numbers that octal cannot hold). */
function parseNumber(header: Buffer, start: number, length: number, what: string): number {
  const field = header.subarray(start, start + length);
  const first = field[0] ?? 0;
  if ((first & 0x80) !== 0) {
    let value = 0n;
    for (const byte of field) value = (value << 8n) | BigInt(byte);
    const bits = BigInt(length * 8);
    const signed = first === 0xff ? value - (1n << bits) : value - (1n << (bits - 1n));
    return toFinite(Number(signed), what);
  }
  const text = cutAtNul(field).toString('latin1').trim();
  if (text === '') return 0;
  if (!/^[0-7]+$/.test(text)) throw invalid(`a header with a bad ${what}`);
  return Number.parseInt(text, 8);
}

function toFinite(value: number, what: string): number {
  if (!Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER)
    throw invalid(`a header with a bad ${what}`);
  if (value < 0 && what !== 'mtime') throw invalid(`a header with a negative ${what}`);
  return value;
}

function cutAtNul(field: Buffer): Buffer {
  const end = field.indexOf(0);
  return end < 0 ? field : field.subarray(0, end);
}

function isZero(block: Buffer): boolean {
  return block.every((byte) => byte === 0);
}

function invalid(what: string): AppError {
  return new AppError('PACKAGE_INVALID', `not a usable tar.gz archive: ${what}`);
}
