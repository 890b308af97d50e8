import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import type { Contents } from './content-keys.ts';

/** Reads all files that git tracks or would add. */
export async function readContents(projectDir: string): Promise<Contents> {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'];
  const { stdout } = await run('git', args, { cwd: projectDir });
  const read = stdout.split('\0').map(async (path) => {
    // The path may be deleted, a link to a folder, or a repository.
    const text = await readFile(join(projectDir, path), 'utf8').catch(() => null);
    return text === null ? [] : [[path, text] as const];
  });
  return new Map((await Promise.all(read)).flat());
}
