import { run } from '#shared/process/run.ts';

const MKSQUASHFS_TIMEOUT_MS = 10 * 60_000;

/**
 * What every installation reads lies there as it is, since unpacking it in the machine would be a
 * large part of its time: Node, the agent, libraries, and what image and package are opened with.
 */
const UNCOMPRESSED = [
  'opt/gnt/*',
  'usr/bin/perl',
  'usr/bin/qemu-img',
  'usr/bin/tar',
  'usr/lib/*-linux-gnu/lib*.so*',
];

/** Packs the root tree, all else with zstd. Same tree and date, same bytes. */
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
