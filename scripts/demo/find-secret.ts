import { type FileHandle, open, readdir, readFile, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { findData } from '#shared/sys/files.ts';
import { GIB, MIB } from '#shared/units/bytes.ts';
import { parseSwaps } from '../../noded/operations/doctor/secrecy-facts.ts';

/**
 * Overlap between chunks, so that a value across their border is found. Limits the length of
 * secrets.
 */
const OVERLAP_BYTES = 4096;
/** Minimum length of a value whose halves are distinctive too. */
const HALVED_LENGTH = 32;
/** Larger deleted files of other programs are skipped. */
const MAX_DELETED_BYTES = GIB;
const DELETED = ' (deleted)';
/** A readable line of /proc/PID/maps: its bounds and its file. */
const READABLE_MAPPING = /^([0-9a-f]+)-([0-9a-f]+) r\S+ \S+ \S+ \d+ *(\S.*)?$/gm;

/**
 * Looks for a value in every file below a root (journals of the store and core files included), in
 * the host's swap, in deleted files that any process holds open, and in the command line and
 * environment of every process. A long value is also found when it is split in two, as a store
 * splits records between its pages, and in base64. Skips memory, which may hold secrets
 * (`holdsInMemory` looks there). That includes memfds: they end with their last process, and a
 * daemon's holds the guest's own console output.
 * @param secret one or several, so that each file is read once
 * @param isExcluded paths that may contain it: the instance's own disk, the operator's input file
 * @returns the paths of places with the value
 */
export async function findSecret(
  secret: string | readonly string[],
  root: string,
  isExcluded: (path: string) => boolean,
): Promise<readonly string[]> {
  const needles = [secret].flat().flatMap(needlesFor);
  const found: string[] = [];
  for await (const path of walk(root)) {
    if (!isExcluded(path) && (await contains(path, needles))) found.push(path);
  }
  const swaps = parseSwaps(await readFile('/proc/swaps', 'utf8'));
  for (const path of swaps) if (await contains(path, needles)) found.push(path);
  const pids = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry));
  // Many descriptors share one file: inherited ones, and copies.
  const seen = new Set<string>();
  for (const pid of pids) {
    if (Number(pid) !== process.pid) {
      for (const name of ['cmdline', 'environ']) {
        const bytes = await readFile(`/proc/${pid}/${name}`).catch(() => Buffer.alloc(0));
        if (holdsAny(bytes, needles)) found.push(`/proc/${pid}/${name}`);
      }
    }
    for (const { path, target, identity } of await deletedFilesOf(pid)) {
      if (isExcluded(target) || seen.has(identity)) continue;
      seen.add(identity);
      if (await contains(path, needles)) found.push(target);
    }
  }
  return found;
}

/** Whether a process has a value in its readable memory. */
export async function holdsInMemory(value: string | Buffer, pid: number): Promise<boolean> {
  const needles = needlesFor(value);
  const maps = await readFile(`/proc/${pid}/maps`, 'latin1');
  await using memory = await open(`/proc/${pid}/mem`, 'r');
  for (const [, from = '', to = '', name] of maps.matchAll(READABLE_MAPPING)) {
    // The kernel's own pages, and devices, whose reads may block.
    if (name?.startsWith('[v') || name?.startsWith('/dev/')) continue;
    if (await regionHolds(memory, BigInt(`0x${from}`), BigInt(`0x${to}`), needles)) return true;
  }
  return false;
}

async function regionHolds(
  memory: FileHandle,
  from: bigint,
  to: bigint,
  needles: readonly Buffer[],
): Promise<boolean> {
  const chunk = Buffer.alloc(MIB + OVERLAP_BYTES);
  for (let at = from; at < to; at += BigInt(MIB)) {
    const length = Number(to - at < BigInt(chunk.length) ? to - at : BigInt(chunk.length));
    // Unmapped meanwhile, or beyond the end of its file.
    const read = await memory.read(chunk, 0, length, at).catch(() => ({ bytesRead: 0 }));
    if (holdsAny(chunk.subarray(0, read.bytesRead), needles)) return true;
  }
  return false;
}

/** Whether a text contains a value, as it is, in base64, or a half of a long one. */
export function tells(text: string, value: string): boolean {
  return holdsAny(Buffer.from(text), needlesFor(value));
}

function needlesFor(value: string | Buffer): readonly Buffer[] {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  if (bytes.length < HALVED_LENGTH) return [bytes];
  const middle = bytes.length / 2;
  // By the value's offset within a group of three bytes. Characters shared with its neighbours are
  // left out.
  const encoded = [0, 1, 2].map((offset) =>
    Buffer.from(
      Buffer.concat([Buffer.alloc(offset), bytes])
        .toString('base64')
        .slice(4, -4)
        .slice(0, 32),
    ),
  );
  return [bytes.subarray(0, middle), bytes.subarray(middle), ...encoded];
}

function holdsAny(bytes: Buffer, needles: readonly Buffer[]): boolean {
  return needles.some((needle) => bytes.includes(needle));
}

interface DeletedFile {
  readonly path: string;
  readonly target: string;
  readonly identity: string;
}

async function deletedFilesOf(pid: string): Promise<readonly DeletedFile[]> {
  const files: DeletedFile[] = [];
  for (const fd of await readdir(`/proc/${pid}/fd`).catch((): string[] => [])) {
    const path = `/proc/${pid}/fd/${fd}`;
    const target = await readlink(path).catch(() => '');
    if (!target.endsWith(DELETED) || target.startsWith('/memfd:')) continue;
    const found = await stat(path).catch(() => undefined);
    if (found?.isFile() && found.size <= MAX_DELETED_BYTES)
      files.push({
        path,
        target: target.slice(0, -DELETED.length),
        identity: `${found.dev}:${found.ino}`,
      });
  }
  return files;
}

async function* walk(dir: string): AsyncGenerator<string> {
  for (const entry of await readdir(dir, { withFileTypes: true }).catch(() => [])) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) yield* walk(path);
    else if (entry.isFile()) yield path;
  }
}

async function contains(path: string, needles: readonly Buffer[]): Promise<boolean> {
  const window = Buffer.alloc(OVERLAP_BYTES + MIB);
  try {
    await using file = await open(path, 'r');
    for (const { start, end } of dataOf(file.fd, (await file.stat()).isFile())) {
      let kept = 0;
      for (let at = start; at < end;) {
        const { bytesRead } = await file.read(window, kept, Math.min(MIB, end - at), at);
        if (bytesRead === 0) break;
        const filled = window.subarray(0, kept + bytesRead);
        if (holdsAny(filled, needles)) return true;
        kept = Math.min(OVERLAP_BYTES, filled.length);
        window.copyWithin(0, filled.length - kept, filled.length);
        at += bytesRead;
      }
    }
  } catch {
    // The process has ended meanwhile.
  }
  return false;
}

/** Skips the holes of a file, since values are not zeros. A swap device has no holes. */
function* dataOf(fd: number, isFile: boolean): Generator<{ start: number; end: number }> {
  if (!isFile) yield { start: 0, end: Infinity };
  else for (let data = findData(fd, 0); data !== null; data = findData(fd, data.end)) yield data;
}
