import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import { run } from '#shared/process/run.ts';

const MAX_ATTEMPTS = 12;
const SNAPSHOT_TIMEOUT_MS = 60_000;
const BUNDLE = 'agent.cjs';
const BLOB = 'agent.blob';
/**
 * Every build runs at the same path, in its own mount namespace: a snapshot contains path names.
 */
const BUILD_AT = '/mnt';
const IN_NAMESPACE = `mount --bind "$1" ${BUILD_AT} && cd ${BUILD_AT} && shift && exec "$@"`;

/**
 * Runs the agent's bundle up to its main function and saves the heap, so that the boot neither
 * compiles code nor makes schemas. Addresses, paths, process id and random numbers are fixed. V8
 * still changes a few bytes now and then, so that snapshots are made until one repeats.
 * @param directory holds `node`, the binary that will run it (a snapshot fits no other)
 */
export async function makeSnapshot(
  bundle: Buffer,
  directory: string,
  signal: AbortSignal,
): Promise<Buffer> {
  await writeFile(join(directory, BUNDLE), bundle);
  try {
    const seen = new Set<string>();
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const text = (await snapshotOnce(directory, signal)).toString('latin1');
      if (seen.has(text)) return Buffer.from(text, 'latin1');
      seen.add(text);
    }
  } finally {
    await rm(join(directory, BUNDLE), { force: true });
  }
  throw new AppError(
    'APPLIANCE_BUILD',
    `Node produced ${MAX_ATTEMPTS} different snapshots of the agent`,
  );
}

async function snapshotOnce(directory: string, signal: AbortSignal): Promise<Buffer> {
  await run(
    'unshare',
    [
      ...[
        '--mount',
        '--pid',
        '--fork',
        '--kill-child=KILL',
        'sh',
        '-c',
        IN_NAMESPACE,
        'sh',
        directory,
      ],
      ...['setarch', '--addr-no-randomize', './node'],
      ...['--no-warnings', '--random-seed=1', '--hash-seed=1', '--predictable', '--v8-pool-size=0'],
      ...['--snapshot-blob', BLOB, '--build-snapshot', BUNDLE],
    ],
    { timeoutMs: SNAPSHOT_TIMEOUT_MS, signal },
  );
  const blob = await readFile(join(directory, BLOB));
  await rm(join(directory, BLOB));
  return blob;
}
