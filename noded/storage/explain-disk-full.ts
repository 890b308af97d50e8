import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { nameDiskFull } from '#shared/errors/disk-full.ts';
import { MIB } from '#shared/units/bytes.ts';

/** Errors that may stem from an I/O error in the guest because the host's file system is full. */
const possiblyDiskFull = [
  'IMAGE_DUMP',
  'SCRIPT_FAILED',
  'HOOK_FAILED',
  'PACKAGE_INVALID',
  'INTERNAL',
  'COMMAND_FAILED',
] as const;
const FULL_BELOW_BYTES = MIB;

/**
 * Returns DISK_FULL if a full file system caused the error. A guest sees it as an I/O error, this
 * process as ENOSPC.
 * @param freeBytes where the guest wrote
 * @param again hint for the time after space was freed
 */
export async function explainDiskFull(
  error: unknown,
  freeBytes: () => Promise<number>,
  again: string,
): Promise<unknown> {
  // Names ENOSPC of this process now, not only when the error is recorded.
  const named = nameDiskFull(error);
  if (!isAppError(named) || !possiblyDiskFull.some((code) => code === named.code)) return named;
  const free = await freeBytes().catch(() => Number.MAX_SAFE_INTEGER);
  if (free > FULL_BELOW_BYTES) return named;
  return new AppError('DISK_FULL', `the node's file system is full: ${named.message}`, {
    hint: `Free space below var/lib/gnt, then ${again}`,
    details: named.details,
    cause: named,
  });
}
