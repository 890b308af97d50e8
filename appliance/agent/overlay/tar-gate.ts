import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { badMap, type HoleMap, readHoleMap } from './hole-map.ts';
import { type EntryExtension, type JudgedEntry, judgeEntry } from './judge-entry.ts';
import { parsePax } from './pax.ts';
import { BLOCK, cutAtNul, DamagedHeader, isZeroBlock, parseTarHeader } from './tar-header.ts';

/** pax headers and GNU long names are held in memory until their entry is judged. */
const MAX_META_BYTES = 4 * MIB;
/** Keys that a global pax header must not set, since it applies to all following entries. */
const entryOnlyKeys = /^(path|linkpath|size|uid|gid|GNU\.sparse\..*|SCHILY\..*)$/;
const END_MARK = Buffer.alloc(2 * BLOCK);

type Extension = { -readonly [Key in keyof EntryExtension]: EntryExtension[Key] };

/**
 * Filters an archive and passes only acceptable entries, byte for byte. Drops the root's own
 * entries and entries that `mayDrop` selects. The first refused entry ends the archive. No byte of
 * an entry passes before the entry is judged.
 * - INVARIANTS: `#held` are bytes of earlier chunks of an entry that is not judged yet; `#missing`
 *   bytes of the current step are outstanding; a step's bytes are in `#step` until it is complete.
 */
export class TarGate {
  readonly passed: { entries: number; bytes: number } = { entries: 0, bytes: 0 };
  #step: Buffer[] = [];
  #missing = BLOCK;
  #reads: 'header' | 'meta' | 'sparse-map' | 'nothing' = 'header';
  #metaType = '';
  #extension: Extension = { pax: null, longName: null, longLink: null };
  #held: Buffer[] = [];
  #contentLeft = 0;
  #isDropped = false;
  #isFirst = true;
  /** Length of the current header without padding, and of the content behind a sparse map. */
  #metaBytes = 0;
  #contentAfterMap = 0;
  #map: HoleMap | null = null;
  readonly #mayDrop: (entry: JudgedEntry) => boolean;

  /** @param mayDrop called once for each entry but the root's, in order */
  constructor(mayDrop: (entry: JudgedEntry) => boolean = () => false) {
    this.#mayDrop = mayDrop;
  }

  /** Whether the end mark was read. Later bytes do not belong to the archive. */
  get isEnded(): boolean {
    return this.#reads === 'nothing';
  }

  /**
   * @returns the passed bytes of this and earlier chunks
   * @throws AppError PACKAGE_UNSAFE, PACKAGE_INVALID
   */
  push(chunk: Buffer): Buffer[] {
    if (this.isEnded) return [];
    const out: Buffer[] = [];
    let at = 0;
    // Start of the bytes that are neither passed nor dropped, and start of the unjudged bytes.
    let from = 0;
    let open = 0;
    while (at < chunk.length && !this.isEnded) {
      if (this.#contentLeft > 0) {
        const length = Math.min(this.#contentLeft, chunk.length - at);
        this.#contentLeft -= length;
        at += length;
        open = at;
        if (this.#isDropped) from = at;
        continue;
      }
      const taken = Math.min(this.#missing, chunk.length - at);
      this.#step.push(chunk.subarray(at, at + taken));
      this.#missing -= taken;
      at += taken;
      if (this.#missing > 0) break;
      const verdict = this.#finishStep();
      if (verdict === 'undecided') continue;
      if (verdict === 'pass') out.push(...this.#held);
      else {
        out.push(chunk.subarray(from, open));
        from = at;
      }
      this.#held = [];
      open = at;
    }
    if (this.isEnded) out.push(END_MARK);
    else {
      out.push(chunk.subarray(from, open));
      if (open < chunk.length) this.#held.push(chunk.subarray(open));
    }
    return out.filter((bytes) => bytes.length > 0);
  }

  /**
   * Must be called after the last byte.
   * @throws AppError PACKAGE_INVALID when the archive is incomplete
   */
  end(): void {
    if (this.isEnded) return;
    if (this.#isFirst && this.#step.length === 0) throw unusable('the archive is empty');
    const isBetween = this.#contentLeft === 0 && this.#missing === BLOCK && !this.#isExtended();
    throw unusable(isBetween ? 'the archive has no end mark' : 'the archive ends within an entry');
  }

  #isExtended(): boolean {
    const { pax, longName, longLink } = this.#extension;
    return pax !== null || longName !== null || longLink !== null;
  }

  #finishStep(): 'pass' | 'drop' | 'undecided' {
    const [first] = this.#step;
    const bytes = this.#step.length === 1 && first ? first : Buffer.concat(this.#step);
    this.#step = [];
    this.#missing = BLOCK;
    if (this.#reads === 'meta') {
      this.#reads = 'header';
      return this.#takeMeta(bytes);
    }
    if (this.#reads === 'header') return this.#takeHeader(bytes);
    this.#takeMap(bytes);
    return 'pass';
  }

  #takeHeader(block: Buffer): 'pass' | 'drop' | 'undecided' {
    if (isZeroBlock(block)) {
      if (this.#isExtended()) throw unusable('a header without its entry');
      this.#reads = 'nothing';
      return 'drop';
    }
    const header = parseFirstOrLater(block, this.#isFirst);
    this.#isFirst = false;
    if ('xgLK'.includes(header.type)) {
      if (header.sizeBytes === 0 || header.sizeBytes > MAX_META_BYTES)
        throw unusable(`a header of ${header.sizeBytes} bytes`);
      this.#metaType = header.type;
      this.#metaBytes = header.sizeBytes;
      this.#missing = padded(header.sizeBytes);
      this.#reads = 'meta';
      return 'undecided';
    }
    const entry = judgeEntry(header, this.#extension);
    const { isRoot, contentBytes } = entry;
    const map = readHoleMap(block, header, this.#extension.pax);
    if (map && entry.kind === 'directory') throw badMap('that belongs to a directory');
    this.#extension = { pax: null, longName: null, longLink: null };
    this.#isDropped = isRoot || this.#mayDrop(entry);
    this.passed.entries += isRoot ? 0 : 1;
    this.passed.bytes += contentBytes;
    this.#contentLeft = padded(contentBytes);
    if (map) this.#follow(map);
    return this.#isDropped ? 'drop' : 'pass';
  }

  #follow(map: HoleMap): void {
    this.#map = map;
    this.#contentAfterMap = this.#contentLeft;
    this.#contentLeft = 0;
    this.#reads = 'sparse-map';
    this.#endMap();
  }

  #takeMap(block: Buffer): void {
    const map = this.#map;
    // A map exists in this state.
    if (map === null) return;
    map.push(block);
    if (map.isInContent) this.#contentAfterMap -= BLOCK;
    this.#endMap();
  }

  /** Ends a complete map. The content behind it must be at least as long as its segments. */
  #endMap(): void {
    const map = this.#map;
    if (map === null) return;
    const isTooLong = map.isOpen && map.isInContent && this.#contentAfterMap === 0;
    if (isTooLong || map.contentBytes > this.#contentAfterMap)
      throw badMap('that describes more bytes than the entry has');
    if (map.isOpen) return;
    this.#reads = 'header';
    this.#contentLeft = this.#contentAfterMap;
    this.#map = null;
  }

  #takeMeta(bytes: Buffer): 'pass' | 'undecided' {
    const meta = bytes.subarray(0, this.#metaBytes);
    const extension = this.#extension;
    switch (this.#metaType) {
      case 'g': {
        const bad = [...parsePax(meta).keys()].find((key) => entryOnlyKeys.test(key));
        if (bad !== undefined) throw unusable(`a global header that sets ${bad.slice(0, 40)}`);
        return this.#isExtended() ? 'undecided' : 'pass';
      }
      case 'x':
        if (extension.pax) throw unusable('an entry with two pax headers');
        extension.pax = parsePax(meta);
        return 'undecided';
      case 'L':
        if (extension.longName) throw unusable('an entry with two long names');
        extension.longName = cutAtNul(meta);
        return 'undecided';
      default:
        if (extension.longLink) throw unusable('an entry with two long link targets');
        extension.longLink = cutAtNul(meta);
        return 'undecided';
    }
  }
}

function parseFirstOrLater(block: Buffer, isFirst: boolean): ReturnType<typeof parseTarHeader> {
  try {
    return parseTarHeader(block);
  } catch (error) {
    if (isFirst && error instanceof DamagedHeader) throw unusable('not a tar archive', error);
    throw error;
  }
}

function padded(sizeBytes: number): number {
  return Math.ceil(sizeBytes / BLOCK) * BLOCK;
}

function unusable(what: string, cause?: unknown): AppError {
  return new AppError('PACKAGE_INVALID', `not a usable tar.gz archive: ${what}`, {
    cause,
    hint: 'Create it with: tar -C DIR -czf x.tar.gz .',
  });
}
