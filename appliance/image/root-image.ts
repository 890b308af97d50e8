import { run } from '#shared/process/run.ts';

const MKSQUASHFS_TIMEOUT_MS = 10 * 60_000;

/**
 * Stored uncompressed, since every installation reads these files and decompression would take a
 * large part of its time: Node, the agent, libraries, and the tools for image and package.
 */
const UNCOMPRESSED = [
  'opt/gnt/*',
  'usr/bin/perl',
  'usr/bin/qemu-img',
  'usr/bin/tar',
  'usr/lib/*-linux-gnu/lib*.so*',
];

/** Packs the root tree, other files with zstd. Equal tree and date make equal bytes. */
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
      ...UNCOMPRESSED.flatMap((path) => ['-action', `uncompressed@pathname(${path})`]),
      '-noI',
      '-reproducible',
    ],
    { timeoutMs: MKSQUASHFS_TIMEOUT_MS, signal },
  );
}
