import { setImmediate } from 'node:timers/promises';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { MAX_ARCHIVE_DEPTH, MAX_ARCHIVE_NAMES, MAX_ARCHIVE_PATH_BYTES } from './explode-script.ts';

export const MAX_INDEX_BYTES = 64 * MIB;
/** Takes one or two milliseconds, in which the daemon serves nothing else. */
const LINES_AT_ONCE = 1000;
/** Linux follows at most 40 links for a path (path_resolution(7)). */
const MAX_LINKS_FOLLOWED = 40;
/** Parts of a path while it is followed: those of a link's target and those behind the link. */
const MAX_PARTS = 2 * MAX_ARCHIVE_DEPTH;
/**
 * Folders that one look-up searches for in the index. Each takes some microseconds, in which the
 * daemon serves nothing else. Two or three links in a path of ten parts need thirty.
 */
const MAX_FOLDERS_ASKED = 128;
const LINE_FEED = 0x0a;
/** `l`, the first byte of a link's line. Lines of files begin with digits. */
const LINK_LETTER = 0x6c;

export interface ArchiveExtent {
  readonly offset: number;
  readonly sizeBytes: number;
}
interface ArchiveIndex {
  readonly files: ReadonlyMap<string, ArchiveExtent>;
  /** Targets by path. The empty target is the archive's root. A target need not exist. */
  readonly links: ReadonlyMap<string, string>;
}

/**
 * Parses the index of an archive. It lists files, `OFFSET SIZE PATH` by line, then links,
 * `link PATH`, a tab and the target; both are sorted by the bytes of their paths. A guest wrote it,
 * so that each value is checked. Yields to the event loop in between.
 * @param dataBytes all extents must be within these
 * @throws AppError IMAGE_INVALID
 */
export async function parseArchiveIndex(text: string, dataBytes: number): Promise<ArchiveIndex> {
  // One line more than allowed shows the excess: 64 MiB could be that many empty lines.
  const lines = text.split('\n', MAX_ARCHIVE_NAMES + 2);
  if (lines.length > MAX_ARCHIVE_NAMES + 1)
    throw refusal(`it has more than ${MAX_ARCHIVE_NAMES} names`);
  if (lines.pop() !== '') throw refusal('its last line is truncated');
  const files = new Map<string, ArchiveExtent>();
  const links = new Map<string, string>();
  const sizes = new Map<number, number>();
  let before = Buffer.alloc(0);
  for (const [at, line] of lines.entries()) {
    if (at % LINES_AT_ONCE === LINES_AT_ONCE - 1) await setImmediate();
    const isFirstLink = links.size === 0 && line.startsWith('link ');
    if (isFirstLink) before = Buffer.alloc(0);
    const path = isFirstLink || links.size > 0 ? takeLink(line) : takeFile(line);
    const bytes = Buffer.from(path);
    if (Buffer.compare(before, bytes) >= 0)
      throw refusal('its paths are not sorted, or one occurs twice');
    before = bytes;
  }
  refuseOverlaps(sizes);
  return { files, links };

  function takeFile(line: string): string {
    const [path, extent] = parseFile(line, dataBytes);
    files.set(path, extent);
    const { offset, sizeBytes } = extent;
    // Hard links share the extent of their file.
    if (sizeBytes > 0 && (sizes.get(offset) ?? sizeBytes) !== sizeBytes) throw overlap();
    if (sizeBytes > 0) sizes.set(offset, sizeBytes);
    return path;
  }
  function takeLink(line: string): string {
    const [path, target] = parseLink(line);
    if (files.has(path)) throw refusal('it has a path both as a file and as a link');
    links.set(path, target);
    return path;
  }
}

function parseFile(line: string, dataBytes: number): readonly [string, ArchiveExtent] {
  const [, offset, size, path = ''] = /^(\d{1,15}) (\d{1,15}) ([^\n]+)$/.exec(line) ?? [];
  const extent = { offset: Number(offset), sizeBytes: Number(size) };
  if (!isArchivePath(path)) throw refusal('one of its paths is invalid');
  // NaN fails this comparison too.
  if (!(extent.offset + extent.sizeBytes <= dataBytes)) throw refusal(`the place of ${path}`);
  return [path, extent];
}

function parseLink(line: string): readonly [string, string] {
  const [, path = '', target = '/'] = /^link ([^\n\t]+)\t([^\n\t]*)$/.exec(line) ?? [];
  if (!isArchivePath(path) || (target !== '' && !isArchivePath(target)))
    throw refusal('one of its links is invalid');
  return [path, target];
}

/**
 * Finds the file that a path leads to, through links to files and to folders. Searches the lines as
 * they are, since each plan and each guest asks, and parsing takes tenths of a second. Pure.
 * @param index an index that `parseArchiveIndex` accepted
 */
export function findInArchive(index: Buffer, asked: string): ArchiveExtent | undefined {
  let path = asked;
  let folders = 0;
  for (let followed = 0; followed <= MAX_LINKS_FOLLOWED; followed += 1) {
    // The work grows with the number of folders in the path.
    if (path.length > MAX_ARCHIVE_PATH_BYTES) return undefined;
    const parts = path.split('/').length;
    folders += parts;
    if (parts > MAX_PARTS || folders > MAX_FOLDERS_ASKED) return undefined;
    const file = findLine(index, 'file', path);
    if (file !== undefined) {
      const [offset, sizeBytes] = file.split(' ', 2).map(Number);
      return { offset: offset ?? Number.NaN, sizeBytes: sizeBytes ?? Number.NaN };
    }
    const link = firstLink(index, path);
    if (link === undefined) return undefined;
    const rest = path.slice(link.path.length + 1);
    path = link.target === '' || rest === '' ? `${link.target}${rest}` : `${link.target}/${rest}`;
  }
  return undefined;
}

function firstLink(
  index: Buffer,
  path: string,
): { readonly path: string; readonly target: string } | undefined {
  if (!isLinkLine(index, startOfLine(index, index.length - 1))) return undefined;
  let cut = 0;
  while (cut !== -1) {
    cut = path.indexOf('/', cut + 1);
    const folder = cut === -1 ? path : path.slice(0, cut);
    const line = findLine(index, 'link', folder);
    if (line !== undefined) return { path: folder, target: line.slice(line.indexOf('\t') + 1) };
  }
  return undefined;
}

/** Finds a line by bisection: files precede links, both sorted by the bytes of their paths. */
function findLine(index: Buffer, kind: 'file' | 'link', path: string): string | undefined {
  const wanted = Buffer.from(path);
  let [from, to] = [0, index.length];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    const start = startOfLine(index, middle);
    const end = index.indexOf(LINE_FEED, middle);
    const isLink = isLinkLine(index, start);
    const order =
      isLink === (kind === 'link')
        ? pathOfLine(index.subarray(start, end), isLink).compare(wanted)
        : Number(isLink) - Number(!isLink);
    if (order === 0) return index.toString('utf8', start, end);
    if (order < 0) from = end + 1;
    else to = start;
  }
  return undefined;
}

function startOfLine(index: Buffer, within: number): number {
  return within <= 0 ? 0 : index.lastIndexOf(LINE_FEED, within - 1) + 1;
}

function isLinkLine(index: Buffer, start: number): boolean {
  return index[start] === LINK_LETTER;
}

function pathOfLine(line: Buffer, isLink: boolean): Buffer {
  if (isLink) return line.subarray('link '.length, line.indexOf('\t'));
  return line.subarray(line.indexOf(' ', line.indexOf(' ') + 1) + 1);
}

function isArchivePath(path: string): boolean {
  const isPart = (part: string): boolean => part !== '' && part !== '.' && part !== '..';
  return (
    Buffer.byteLength(path) <= MAX_ARCHIVE_PATH_BYTES &&
    !/[\\\p{Cc}\p{Cs}\ufffd]/u.test(path) &&
    path.split('/').every(isPart)
  );
}

/** Refuses files that share bytes. @param sizes by offset */
function refuseOverlaps(sizes: ReadonlyMap<number, number>): void {
  let end = 0;
  for (const offset of Float64Array.from(sizes.keys()).sort()) {
    if (offset < end) throw overlap();
    end = offset + (sizes.get(offset) ?? 0);
  }
}

function overlap(): AppError {
  return refusal('two files overlap');
}

function refusal(reason: string): AppError {
  return new AppError('IMAGE_INVALID', `the index of the archive is invalid: ${reason}`);
}
