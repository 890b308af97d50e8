import { constants } from 'node:fs';
import { lstat, open, stat } from 'node:fs/promises';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { GIB } from '#shared/units/bytes.ts';

/**
 * Linux' `O_TMPFILE`, which Node does not export (`fcntl-linux.h`, the same on amd64 and arm64).
 */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY;

/**
 * Refuses a size that the file system cannot hold. Tries it with an unnamed temporary file.
 * @throws AppError VALIDATION
 */
export async function checkSize(directory: string, sizeBytes: number): Promise<void> {
  try {
    await using file = await open(directory, O_TMPFILE | constants.O_RDWR, 0o600);
    await file.truncate(sizeBytes);
  } catch (error) {
    if (systemCodeOf(error) !== 'EFBIG') return; // later calls report other errors
    const gib = Math.ceil(sizeBytes / GIB);
    throw new AppError(
      'VALIDATION',
      `a disk of ${gib} GiB exceeds the largest file of this file system`,
      {
        hint: `Choose a smaller size, or put ${directory} on a file system that allows larger files.`,
        cause: error,
      },
    );
  }
}

/** @throws AppError DISK_MISSING */
export async function requireFile(
  instance: InstanceRecord,
  index: number,
  path: string,
): Promise<void> {
  try {
    if ((await stat(path)).isFile()) return;
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
  }
  throw new AppError('DISK_MISSING', `disk ${index} of '${instance.name}' is missing at ${path}`, {
    details: { path },
    hint: `Put the file back, or install a new, empty disk: gnt-instance reinstall ${instance.name}`,
  });
}

/**
 * Requires a regular file for opening a disk without QEMU: the locks protect files of the
 * instance's folder, not the target of a link.
 * @throws AppError DISK_MISSING, NOT_SUPPORTED: it is a link
 */
export async function requireOwnFile(
  instance: InstanceRecord,
  index: number,
  path: string,
): Promise<void> {
  await requireFile(instance, index, path);
  if (!(await lstat(path)).isSymbolicLink()) return;
  throw new AppError(
    'NOT_SUPPORTED',
    `disk ${index} of '${instance.name}' is a symbolic link at ${path}: the instance runs from its target, other operations refuse it`,
    { details: { path }, hint: 'Replace the link by the file itself.' },
  );
}
