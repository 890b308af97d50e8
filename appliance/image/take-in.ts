import { constants, createWriteStream } from 'node:fs';
import { type FileHandle, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract, type Extract } from 'tar-stream';
import type { ApplianceManifest } from '#shared/contract/appliance-manifest.ts';
import { AppError, isAppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { openRegular } from '#shared/files/open-regular.ts';
import { GIB, MIB } from '#shared/units/bytes.ts';
import { MANIFEST_NAME, parseManifest, readManifestText } from './manifest.ts';

/** A manifest, a kernel, an initramfs and a root, with room for additional files. */
const MAX_ENTRIES = 64;
const MAX_BYTES = 16 * GIB;
const GZIP_MAGIC = 0x1f8b;
const PLAIN_NAME = /^(\.\/)?([A-Za-z0-9_+][A-Za-z0-9_.+-]{0,127})$/;
const OPTIONS = { flags: 'wx', mode: 0o600 } as const;

export const IMPORT_HINT =
  'Give a folder with manifest.json and the files that it names, or a tar archive of such a folder.';

/**
 * Copies an appliance from a folder or a tar archive. Its maker may be another user, and this
 * process is root: links of a folder are not followed, only regular files are read, and only up to
 * the size in the manifest.
 * @param fresh an empty folder that other users cannot enter
 * @throws AppError FILE_UNREADABLE (the source is missing), APPLIANCE_MISSING, APPLIANCE_CORRUPT
 */
export async function takeIn(source: string, fresh: string, signal: AbortSignal): Promise<void> {
  await using opened = await openSource(source);
  if (opened.isDirectory) await copyFolder(source, opened.handle, fresh, signal);
  else await unpack(source, opened.handle, fresh, signal);
}

/** Opens a folder or a regular file, so that changes of its path have no effect. */
async function openSource(source: string) {
  try {
    const handle = await open(source, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = await handle.stat();
    if (stat.isDirectory() || stat.isFile())
      return {
        handle,
        isDirectory: stat.isDirectory(),
        [Symbol.asyncDispose]: () => handle.close(),
      };
    await handle.close();
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw unusable(source, messageOf(error), error);
    throw new AppError('FILE_UNREADABLE', `${source} does not exist`, {
      hint: IMPORT_HINT,
      cause: error,
    });
  }
  throw unusable(source, 'it is neither a folder nor a regular file');
}

async function copyFolder(
  source: string,
  folder: FileHandle,
  fresh: string,
  signal: AbortSignal,
): Promise<void> {
  const at = `/proc/self/fd/${folder.fd}`;
  const text = await readManifestText(at, source).catch((error: unknown) => {
    throw isAppError(error) ? error : unusable(join(source, MANIFEST_NAME), explain(error), error);
  });
  const { kernel, initrd, root } = parseManifest(text, source);
  const files = [kernel, initrd, root];
  const bytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  if (bytes > MAX_BYTES) throw unusable(source, `it is larger than ${MAX_BYTES / GIB} GiB`);
  await writeFile(join(fresh, MANIFEST_NAME), text, { ...OPTIONS, flag: OPTIONS.flags });
  for (const file of files) {
    const { name } = file;
    await copyOne(join(at, name), join(fresh, name), file, signal).catch((error: unknown) => {
      throw unusable(join(source, name), explain(error), error);
    });
  }
}

async function copyOne(
  from: string,
  to: string,
  { sizeBytes }: ApplianceManifest['root'],
  signal: AbortSignal,
): Promise<void> {
  const { file, stat } = await openRegular(from, { followLinks: false });
  await using opened = file;
  if (stat.size !== sizeBytes)
    throw new Error(`it has ${stat.size} bytes, but the manifest says ${sizeBytes}`);
  // The file may grow meanwhile: `end` is the last byte that is read.
  const range = { start: 0, end: sizeBytes - 1, highWaterMark: MIB, autoClose: false };
  await pipeline(opened.createReadStream(range), createWriteStream(to, OPTIONS), { signal });
}

/** Returns a reason without the path, which names a descriptor. */
function explain(error: unknown): string {
  const code = systemCodeOf(error);
  if (code === 'ELOOP') return 'it is a symbolic link';
  if (code === 'EINVAL') return 'it is not a regular file';
  return code ?? messageOf(error);
}

async function unpack(
  source: string,
  file: FileHandle,
  fresh: string,
  signal: AbortSignal,
): Promise<void> {
  const reader = extract();
  try {
    const isGzip = (await firstBytes(file)) === GZIP_MAGIC;
    const bytes = file.createReadStream({ start: 0, autoClose: false });
    const unpacked = isGzip ? createGunzip() : new PassThrough();
    const [taken, fed] = await Promise.allSettled([
      takeEntries(reader, fresh),
      pipeline(bytes, unpacked, reader, { signal }),
    ]);
    // A refused entry also ends the feeding, and has the better reason.
    if (taken.status === 'rejected') throw taken.reason;
    if (fed.status === 'rejected') throw fed.reason;
  } catch (error) {
    throw unusable(source, messageOf(error), error);
  }
}

async function takeEntries(reader: Extract, fresh: string): Promise<void> {
  let [entries, bytes] = [0, 0];
  for await (const entry of reader) {
    const { name: path, type, size = 0 } = entry.header;
    entries += 1;
    bytes += size;
    if (entries > MAX_ENTRIES) throw new Error(`it has more than ${MAX_ENTRIES} entries`);
    if (bytes > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES / GIB} GiB`);
    const [, , name] = PLAIN_NAME.exec(path) ?? [];
    // Skips the folder itself, and names that a manifest cannot contain.
    if (type !== 'file' || name === undefined) entry.resume();
    else await pipeline(entry, createWriteStream(join(fresh, name), OPTIONS));
  }
}

async function firstBytes(file: FileHandle): Promise<number> {
  const bytes = Buffer.alloc(2);
  await file.read(bytes, 0, bytes.length, 0);
  return bytes.readUInt16BE();
}

function unusable(path: string, why: string, cause?: unknown): AppError {
  return new AppError('APPLIANCE_CORRUPT', `cannot import ${path}: ${why}`, {
    hint: IMPORT_HINT,
    cause,
  });
}
