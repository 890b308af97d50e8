import { setImmediate } from 'node:timers/promises';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { MAX_ARCHIVE_DEPTH, MAX_ARCHIVE_NAMES, MAX_ARCHIVE_PATH_BYTES } from './explode-script.ts';

/** What an appliance may say of an archive at most. */
export const MAX_INDEX_BYTES = 64 * MIB;
/** A millisecond or two of a daemon that has others to serve. */
const LINES_AT_ONCE = 1000;
/** As many links as Linux follows for a path (path_resolution(7)). */
const MAX_LINKS_FOLLOWED = 40;
/** Parts of a path that is followed: a link's own, and what is behind it. */
const MAX_PARTS = 2 * MAX_ARCHIVE_DEPTH;
/**
 * Folders that one look-up asks for in the index, each for some microseconds of a daemon that has
 * others to serve. Two or three links in a path of ten parts need thirty of them.
 */
const MAX_FOLDERS_ASKED = 128;
const LINE_FEED = 0x0a;
/** The `l` that lines of links begin with: those of files begin with digits. */
const LINK_LETTER = 0x6c;

export interface ArchiveExtent {
  readonly offset: number;
  readonly sizeBytes: number;
}
interface ArchiveIndex {
  readonly files: ReadonlyMap<string, ArchiveExtent>;
  /** Paths by path; the empty one is the archive's root. To files, folders, or nothing at all. */
  readonly links: ReadonlyMap<string, string>;
}

/**
 * The index of an archive: its files, `OFFSET SIZE PATH` by line, then its links, `link PATH` with
 * a tab and what it leads to, each in the order of the paths' bytes. These are the words of a
 * guest, of which each is checked; whatever else the daemon does goes on meanwhile.
 * @param dataBytes what the extents have to be within
 * @throws AppError IMAGE_INVALID
 */
export async function parseArchiveIndex(text: string, dataBytes: number): Promise<ArchiveIndex> {
  // No more than are taken, and what shows that there are more: of 64 MiB each could be empty.
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
    // Hard links have the place of what they are.
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
  // A number that is none is within nothing.
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
 * The file that a path leads to, through links to files and to folders. Asked at each plan and by
 * each guest, it searches the lines as they are: to read all of them takes some tenths of a second.
 * @param index which was parsed once, when it was kept. Pure.
 */
export function findInArchive(index: Buffer, asked: string): ArchiveExtent | undefined {
  let path = asked;
  let folders = 0;
  for (let followed = 0; followed <= MAX_LINKS_FOLLOWED; followed += 1) {
    // Bounds the work, which is for each of its folders.
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

/** The path itself, or the first folder on its way, that is a link. */
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

/** By bisection: files come before links, both in the order of their paths' bytes. */
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

/** Nothing has a part of what another one has. @param sizes by offset */
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
