import { access, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '#shared/errors/app-error.ts';
import { run } from '#shared/process/run.ts';

const CACHE_DIRECTORY = join(homedir(), '.cache/gnt/bench');

/** Files of unpacked Debian packages. */
export interface UnpackedProgram {
  readonly path: string;
  /** For LD_LIBRARY_PATH. */
  readonly libraries: string;
}

/**
 * Unpacks a Debian program for a comparison into a cache, without installing it.
 * @returns null when it is unavailable; the reason goes to stderr
 */
export async function unpackProgram(
  name: string,
  packages: readonly string[],
  path: string,
): Promise<UnpackedProgram | null> {
  const directory = join(CACHE_DIRECTORY, name);
  try {
    const isThere = await access(directory).then(
      () => true,
      () => false,
    );
    if (!isThere) await unpack(packages, directory);
    const libraries = join(directory, 'usr/lib/x86_64-linux-gnu');
    const program = { path: join(directory, path), libraries };
    await access(program.path);
    return program;
  } catch (error) {
    process.stderr.write(`bench: no ${name} to compare with: ${messageOf(error)}\n`);
    return null;
  }
}

async function unpack(packages: readonly string[], directory: string): Promise<void> {
  await mkdir(CACHE_DIRECTORY, { recursive: true });
  const work = await mkdtemp(join(CACHE_DIRECTORY, 'new-'));
  try {
    await run('apt-get', ['download', '-q', ...packages], { cwd: work });
    const archives = (await readdir(work)).filter((file) => file.endsWith('.deb'));
    for (const archive of archives) {
      await run('dpkg', ['-x', join(work, archive), join(work, 'root')]);
    }
    await rename(join(work, 'root'), directory);
  } finally {
    await rm(work, { recursive: true });
  }
}
