import { AppError } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { listLeftOut } from './left-out.ts';
import type { PaxRecords } from './pax.ts';
import { badNumber, MAX_ID, showName, type TarHeader } from './tar-header.ts';

/** An entry with its extension headers applied. */
export interface JudgedEntry {
  /**
   * The root directory itself. It belongs to the guest's system, and `tar -C DIR .` would give it
   * the packer's owner.
   */
  readonly isRoot: boolean;
  readonly contentBytes: number;
  readonly kind: 'file' | 'directory' | 'symlink' | 'hard-link';
  /** Parts of the name, each byte as one character. */
  readonly components: readonly string[];
  /** Target of a link, each byte as one character; null for other kinds. */
  readonly target: string | null;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Names of extended attributes that tar does not unpack. */
  readonly leftOut: readonly string[];
}

export interface EntryExtension {
  readonly pax: PaxRecords | null;
  readonly longName: Buffer | null;
  readonly longLink: Buffer | null;
}

/** PATH_MAX without its NUL, and NAME_MAX (limits.h). */
const MAX_PATH_BYTES = 4095;
const MAX_COMPONENT_BYTES = 255;

/**
 * `7` is a contiguous file, `S` an old GNU sparse file, `D` a directory with a list of its content.
 */
const typesWithContent = new Set(['0', '7', 'S', 'D']);
const typesWithoutContent = new Set(['1', '2', '5']);
const typeNames: Readonly<Record<string, string>> = {
  '3': 'a character device',
  '4': 'a block device',
  '6': 'a named pipe',
  V: 'a volume label',
  M: 'a continuation of a multi-volume archive',
};

/** Whole, decimal, and exact in JavaScript. */
const WHOLE = /^\d{1,15}$/;
const paxNumbers: Readonly<Record<string, RegExp>> = {
  size: WHOLE,
  uid: WHOLE,
  gid: WHOLE,
  mtime: /^-?\d{1,15}(\.\d*)?$/,
  atime: /^-?\d{1,15}(\.\d*)?$/,
  ctime: /^-?\d{1,15}(\.\d*)?$/,
  'GNU.sparse.major': WHOLE,
  'GNU.sparse.minor': WHOLE,
  'GNU.sparse.size': WHOLE,
  'GNU.sparse.realsize': WHOLE,
  'GNU.sparse.numblocks': WHOLE,
  'GNU.sparse.offset': /^\d{1,15}(,\d{1,15})*$/,
  'GNU.sparse.numbytes': /^\d{1,15}(,\d{1,15})*$/,
  'GNU.sparse.map': /^\d{1,15}(,\d{1,15})*$/,
};

/**
 * Decides whether an entry may be unpacked. extract.ts confines tar to the root. This function
 * refuses content that a package should not have, and bytes that another reader would interpret
 * differently.
 * @throws AppError PACKAGE_UNSAFE or PACKAGE_INVALID that names the entry
 */
export function judgeEntry(header: TarHeader, extension: EntryExtension): JudgedEntry {
  const { pax, longName, longLink } = extension;
  const names = present(pax?.get('GNU.sparse.name'), pax?.get('path'), longName);
  const links = present(pax?.get('linkpath'), longLink);
  const name = names[0] ?? header.name;
  if (pax) checkPaxNumbers(name, pax);
  // Readers disagree which of several names counts, so that each is checked.
  for (const candidate of names) splitName(candidate, name);
  const components = splitName(name, name);
  const depth = components.length;
  checkType(header.type, name);
  for (const target of links.length > 0 ? links : [header.linkName]) {
    if (header.type === '1') splitName(target, name, 'it links to');
    if (header.type === '2') checkLinkTarget(depth, target, name);
  }
  const contentBytes = typesWithContent.has(header.type) ? contentOf(header, pax) : 0;
  const kind = kindOf(header.type, name);
  checkDirectory(kind, header.type, name, depth === 0, contentBytes);
  const isLink = kind === 'symlink' || kind === 'hard-link';
  return {
    isRoot: depth === 0,
    contentBytes,
    kind,
    components,
    target: isLink ? (links[0] ?? header.linkName).toString('latin1') : null,
    ...metadataOf(header, pax),
  };
}

function metadataOf(
  header: TarHeader,
  pax: PaxRecords | null,
): Pick<JudgedEntry, 'mode' | 'uid' | 'gid' | 'leftOut'> {
  return {
    mode: header.mode,
    uid: Number(pax?.get('uid') ?? header.uid),
    gid: Number(pax?.get('gid') ?? header.gid),
    leftOut: pax ? listLeftOut(pax) : [],
  };
}

/** Archives older than ustar mark a directory by its name only. */
function kindOf(type: string, name: Buffer): JudgedEntry['kind'] {
  if (type === '2') return 'symlink';
  if (type === '1') return 'hard-link';
  return type === '5' || type === 'D' || isNamedDirectory(name) ? 'directory' : 'file';
}

function isNamedDirectory(name: Buffer): boolean {
  return name.at(-1) === 0x2f;
}

function checkType(type: string, name: Buffer): void {
  if (typesWithContent.has(type) || typesWithoutContent.has(type)) return;
  throw unsafe(
    name,
    `it is ${ownValue(typeNames, type) ?? `an entry of type ${JSON.stringify(type)}`}`,
    'Pack only files, directories and links.',
  );
}

function checkDirectory(
  kind: JudgedEntry['kind'],
  type: string,
  name: Buffer,
  isRoot: boolean,
  contentBytes: number,
): void {
  const isFile = type === '0' || type === '7' || type === 'S';
  if (isFile && contentBytes > 0 && isNamedDirectory(name))
    throw invalid(name, 'its name is a directory name, but it has content');
  if (isRoot && kind !== 'directory') throw invalid(name, 'the root must be a directory');
}

function present(...values: (Buffer | null | undefined)[]): Buffer[] {
  return values.filter((value) => value !== null && value !== undefined);
}

function contentOf(header: TarHeader, pax: PaxRecords | null): number {
  const size = pax?.get('size');
  return size === undefined ? header.sizeBytes : Number(size.toString('latin1'));
}

function checkPaxNumbers(name: Buffer, pax: PaxRecords): void {
  for (const [key, value] of pax) {
    const grammar = ownValue(paxNumbers, key);
    if (grammar === undefined) continue;
    const text = value.toString('latin1');
    if (!grammar.test(text)) throw badNumber(name, key, value);
    if ((key === 'uid' || key === 'gid') && Number(text) > MAX_ID)
      throw badNumber(name, key, value);
  }
}

/**
 * Splits a name relative to the root.
 * @param how the role of a name that is not the entry's own
 */
function splitName(path: Buffer, entry: Buffer, how?: string): string[] {
  const its = how === undefined ? 'its name' : `${how} ${showName(path)}, which`;
  // One character per byte: only ASCII is compared.
  const text = path.toString('latin1');
  const hint =
    'Pack with names relative to the root of the file system: tar -C DIR -czf x.tar.gz .';
  if (text === '') throw invalid(entry, `${its} is empty`);
  if (text.startsWith('/')) throw unsafe(entry, `${its} is absolute`, hint);
  if (text.includes('\0')) throw unsafe(entry, `${its} contains a NUL character`, hint);
  if (text.length > MAX_PATH_BYTES)
    throw invalid(entry, `${its} is longer than ${MAX_PATH_BYTES} bytes`);
  const components = text.split('/').filter((name) => name !== '' && name !== '.');
  if (components.includes('..')) throw unsafe(entry, `${its} contains ".."`, hint);
  if (components.some((name) => name.length > MAX_COMPONENT_BYTES))
    throw invalid(entry, `a part of ${its} is longer than ${MAX_COMPONENT_BYTES} bytes`);
  return components;
}

/**
 * Refuses a relative target that leads above the root. An absolute target is resolved in the
 * guest's root.
 */
function checkLinkTarget(entryDepth: number, target: Buffer, entry: Buffer): void {
  const text = target.toString('latin1');
  if (text.includes('\0') || text.length > MAX_PATH_BYTES)
    throw invalid(entry, 'its link target is not a path');
  if (text.startsWith('/')) return;
  let depth = entryDepth - 1;
  for (const name of text.split('/')) {
    if (name === '' || name === '.') continue;
    depth += name === '..' ? -1 : 1;
    if (depth < 0) throw unsafe(entry, `its link to ${showName(target)} leads out of the root`);
  }
}

function unsafe(entry: Buffer, why: string, hint?: string): AppError {
  return new AppError(
    'PACKAGE_UNSAFE',
    `refused entry ${showName(entry)}: ${why}`,
    hint === undefined ? {} : { hint },
  );
}

function invalid(entry: Buffer, why: string): AppError {
  return new AppError('PACKAGE_INVALID', `entry ${showName(entry)}: ${why}`);
}
