import type { BigIntStats } from 'node:fs';
import type { HvParameters } from '#shared/contract/machine-parameters.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { statHostFile } from '../../host/open-host-file.ts';

const OTHERS_MAY_READ = 0o004n;

/**
 * Checks the host's files that a machine with these parameters boots from; URLs are skipped.
 * @throws AppError HOST_PREREQUISITE naming the first missing file
 */
export async function checkBootFiles({
  kernel_path,
  initrd_path,
  cdrom_image_path,
}: HvParameters): Promise<void> {
  for (const path of [kernel_path, initrd_path]) if (path !== undefined) await readableByAll(path);
  if (cdrom_image_path?.startsWith('/') === true) await checkMediumFile(cdrom_image_path);
}

/**
 * Refuses an empty file as an installation medium. In a normal run the drive may have an empty
 * disc.
 * @throws AppError HOST_PREREQUISITE naming it
 */
export async function refuseEmptyMedium({ cdrom_image_path }: HvParameters): Promise<void> {
  if (cdrom_image_path?.startsWith('/') !== true) return;
  const found = await find(cdrom_image_path);
  if (!found.isFile() || found.size > 0n) return;
  throw new AppError('HOST_PREREQUISITE', `${cdrom_image_path} is empty`, {
    hint: 'Fetch or copy the medium again.',
  });
}

/**
 * Checks a file that QEMU opens by name, as its own user.
 * @throws AppError HOST_PREREQUISITE naming the file
 */
async function readableByAll(path: string): Promise<void> {
  const found = await find(path);
  if (!found.isFile()) {
    throw new AppError('HOST_PREREQUISITE', `${path} is not a file`, {
      hint: 'Name the kernel or initrd file itself.',
    });
  }
  if ((found.mode & OTHERS_MAY_READ) !== 0n) return;
  throw new AppError(
    'HOST_PREREQUISITE',
    `${path} must be readable by every user: QEMU runs unprivileged`,
    {
      hint: `Run chmod o+r ${path}, or name a copy. Every user of the node can then read it.`,
    },
  );
}

/**
 * Checks a cdrom, which QEMU gets as an open file: a file, or a drive of the host.
 * @throws AppError HOST_PREREQUISITE naming it
 */
async function checkMediumFile(path: string): Promise<void> {
  const found = await find(path);
  if (found.isFile() || found.isBlockDevice()) return;
  throw new AppError('HOST_PREREQUISITE', `${path} is neither a file nor a drive`);
}

async function find(path: string): Promise<BigIntStats> {
  try {
    return await statHostFile(path);
  } catch (error) {
    throw new AppError('HOST_PREREQUISITE', `${path}: ${systemCodeOf(error) ?? 'unreadable'}`, {
      hint: 'Check the path on the node.',
      cause: error,
    });
  }
}
