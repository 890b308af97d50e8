import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { nameDiskFull } from '#shared/errors/disk-full.ts';
import { MIB } from '#shared/units/bytes.ts';

/** As these an I/O error of a full host may show itself inside the guest. */
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
 * A guest sees a full host as an I/O error, this process as ENOSPC: says what it was.
 * @param freeBytes where the guest wrote
 * @param again what to do once there is space
 */
export async function explainDiskFull(
  error: unknown,
  freeBytes: () => Promise<number>,
  again: string,
): Promise<unknown> {
  // Without this, what this process was told itself would be named only when it is recorded.
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
