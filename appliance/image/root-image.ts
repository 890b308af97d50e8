import { run } from '#shared/process/run.ts';

const MKSQUASHFS_TIMEOUT_MS = 10 * 60_000;

/**
 * Packs the root tree: everything with zstd, Node uncompressed, since unpacking it would be a large
 * part of the boot time. Same tree and date, same bytes.
 */
export async function packRoot(
  rootPath: string,
  outputPath: string,
  sourceDateSeconds: number,
  signal: AbortSignal,
): Promise<void> {
  await run(
    'mksquashfs',
    [
      rootPath,
      outputPath,
      '-noappend',
      '-no-progress',
      '-quiet',
      ...['-comp', 'zstd', '-Xcompression-level', '6', '-b', '131072'],
      ...['-mkfs-time', String(sourceDateSeconds), '-all-time', String(sourceDateSeconds)],
      ...['-action', 'uncompressed@pathname(opt/gnt/*)'],
      '-noI',
      '-reproducible',
    ],
    { timeoutMs: MKSQUASHFS_TIMEOUT_MS, signal },
  );
}
