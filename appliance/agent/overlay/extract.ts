import { constants, rmdirSync } from 'node:fs';
import {
  chmod,
  type FileHandle,
  lchown,
  link,
  lutimes,
  mkdir,
  open,
  rename,
  rm,
  symlink,
  utimes,
} from 'node:fs/promises';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import type { TarEntry } from './tar-reader.ts';
import { checkLinkTarget, lstatIfThere, splitEntryPath, TargetRoot } from './target-root.ts';

export interface ExtractOptions {
  /** Sets one extended attribute on the file at `path`, which is safe to open. */
  readonly setXattr: (path: string, name: string, value: Buffer) => Promise<void>;
  /** Told of each entry that was written. */
  readonly onEntry?: (path: string) => void;
}

export interface ExtractResult {
  readonly entries: number;
  readonly bytes: number;
}

/** A new file gets this name first and its own when it is complete, so that nothing is ever written through what was there. */
const TEMPORARY_NAME = '.gnt-overlay-entry';
const CREATE_FLAGS =
  constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/**
 * Puts the entries of an archive into a directory: owners, modes, times, links and extended attributes as in the archive, what is
 * there is replaced, directories are merged, and nothing lands outside.
 * @throws AppError PACKAGE_UNSAFE or PACKAGE_INVALID that names the entry; DISK_FULL
 */
export async function extractTar(
  entries: AsyncIterable<TarEntry>,
  rootPath: string,
  options: ExtractOptions,
): Promise<ExtractResult> {
  const root = new TargetRoot(rootPath);
  const directories: { components: readonly string[]; modifiedAtMs: number }[] = [];
  const result = { entries: 0, bytes: 0 };
  for await (const entry of entries) {
    const components = splitEntryPath(entry.path);
    refuseSpecial(entry);
    // The root itself belongs to the guest's system: `tar -C DIR .` would give it the packer's owner.
    if (components.length === 0) continue;
    try {
      const isNewState = await placeEntry(root, components, entry, options);
      if (entry.type === 'directory' && isNewState)
        directories.push({ components, modifiedAtMs: entry.modifiedAtMs });
    } catch (error) {
      throw explain(error, entry);
    }
    options.onEntry?.(entry.path);
    result.entries += 1;
    result.bytes += entry.type === 'file' ? entry.sizeBytes : 0;
  }
  // Last, and children before parents: writing into a directory changes its time.
  for (const { components, modifiedAtMs } of directories.reverse())
    await setDirectoryTime(root, components, modifiedAtMs);
  return result;
}

function refuseSpecial(entry: TarEntry): void {
  if (entry.type !== 'special') return;
  throw new AppError(
    'PACKAGE_UNSAFE',
    `refused entry ${JSON.stringify(entry.path)}: it is a ${entry.typeName}`,
    { hint: 'pack files, directories and links only' },
  );
}

/** @returns false when a directory entry met a symbolic link to a directory, which stays as it is */
async function placeEntry(
  root: TargetRoot,
  components: readonly string[],
  entry: TarEntry,
  options: ExtractOptions,
): Promise<boolean> {
  const name = components.at(-1) ?? '';
  const parent = root.openDirectory(components.slice(0, -1), { create: true });
  try {
    const path = `${parent.path}/${name}`;
    if (entry.type === 'directory')
      return await placeDirectory(root, components, path, entry, options);
    clearWay(path, entry);
    const temporary = `${parent.path}/${TEMPORARY_NAME}`;
    await rm(temporary, { force: true });
    if (entry.type === 'file') await writeFile(temporary, entry, options);
    else if (entry.type === 'symlink') await writeSymlink(temporary, components, entry);
    else await writeHardLink(root, temporary, entry);
    // Two names of one file are left alone by rename(2): then the temporary one must go.
    await rename(temporary, path);
    await rm(temporary, { force: true });
    return true;
  } finally {
    parent.close();
  }
}

/** Only an empty directory gives way to something else, as with tar. */
function clearWay(path: string, entry: TarEntry): void {
  if (lstatIfThere(path)?.isDirectory() !== true) return;
  try {
    rmdirSync(path);
  } catch (error) {
    throw new AppError(
      'PACKAGE_INVALID',
      `entry ${JSON.stringify(entry.path)} would replace a directory that is not empty`,
      { cause: error },
    );
  }
}

async function placeDirectory(
  root: TargetRoot,
  components: readonly string[],
  path: string,
  entry: TarEntry,
  options: ExtractOptions,
): Promise<boolean> {
  const found = lstatIfThere(path);
  if (found?.isSymbolicLink() === true) {
    // `lib` in an archive, `/lib -> usr/lib` on the disk: the contents go where the link leads.
    root.openDirectory(components, { create: false }).close();
    return false;
  }
  if (found?.isDirectory() !== true) {
    if (found) await rm(path);
    await mkdir(path, 0o700);
  }
  await lchown(path, entry.uid, entry.gid);
  await chmod(path, entry.mode);
  for (const [name, value] of entry.xattrs) await options.setXattr(path, name, value);
  return true;
}

async function writeFile(path: string, entry: TarEntry, options: ExtractOptions): Promise<void> {
  const file = await open(path, CREATE_FLAGS, 0o600);
  try {
    await writeContent(file, entry);
    await file.chown(entry.uid, entry.gid);
    await file.chmod(entry.mode);
    for (const [name, value] of entry.xattrs) await options.setXattr(path, name, value);
    const seconds = entry.modifiedAtMs / 1000;
    await file.utimes(seconds, seconds);
  } finally {
    await file.close();
  }
}

async function writeContent(file: FileHandle, entry: TarEntry): Promise<void> {
  const extents = entry.sparse ?? [{ offset: 0, length: entry.sizeBytes }];
  let index = 0;
  let done = 0;
  for await (const chunk of entry.content()) {
    let taken = 0;
    while (taken < chunk.length) {
      const extent = extents[index];
      if (!extent) throw new AppError('PACKAGE_INVALID', 'more content than its map says');
      const length = Math.min(chunk.length - taken, extent.length - done);
      await writeFully(file, chunk.subarray(taken, taken + length), extent.offset + done);
      taken += length;
      done += length;
      if (done === extent.length) {
        index += 1;
        done = 0;
      }
    }
  }
  if (entry.sparse) await file.truncate(entry.sizeBytes);
}

async function writeFully(file: FileHandle, bytes: Buffer, offset: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, offset + done);
    done += bytesWritten;
  }
}

async function writeSymlink(
  path: string,
  components: readonly string[],
  entry: TarEntry,
): Promise<void> {
  checkLinkTarget(components, entry.linkTarget);
  await symlink(entry.linkTarget, path);
  await lchown(path, entry.uid, entry.gid);
  const seconds = entry.modifiedAtMs / 1000;
  await lutimes(path, seconds, seconds);
}

/** The other name may be a symbolic link itself: it is linked, never followed (link(2)). */
async function writeHardLink(root: TargetRoot, path: string, entry: TarEntry): Promise<void> {
  const components = splitEntryPath(entry.linkTarget);
  const parent = root.openDirectory(components.slice(0, -1), { create: false });
  try {
    await link(`${parent.path}/${components.at(-1) ?? ''}`, path);
  } finally {
    parent.close();
  }
}

async function setDirectoryTime(
  root: TargetRoot,
  components: readonly string[],
  modifiedAtMs: number,
): Promise<void> {
  const directory = root.openDirectory(components, { create: false });
  try {
    await utimes(directory.path, modifiedAtMs / 1000, modifiedAtMs / 1000);
  } finally {
    directory.close();
  }
}

function explain(error: unknown, entry: TarEntry): unknown {
  const code = systemCodeOf(error);
  const name = JSON.stringify(entry.path);
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new AppError('DISK_FULL', `no space left for entry ${name}`, { cause: error });
  if (entry.type === 'hardlink' && (code === 'ENOENT' || code === 'NOT_FOUND'))
    return new AppError(
      'PACKAGE_INVALID',
      `entry ${name} links to ${entry.linkTarget}, which is not there`,
      { cause: error },
    );
  return error;
}
