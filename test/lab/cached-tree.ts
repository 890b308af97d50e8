import { createHash } from 'node:crypto';
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import { readAptSources } from '../../appliance/image/apt-source-files.ts';
import { chooseAptSources } from '../../appliance/image/apt-sources.ts';

const BUILD_TIMEOUT_MS = 15 * 60_000;

/**
 * A folder that is made once and kept in the build cache.
 * @param inputs what it is made of: others make another folder
 * @param make makes `root`, which is not there, and may write beside it
 * @returns its path; nothing may be written below it
 */
export async function cachedTree(
  name: string,
  inputs: readonly string[],
  make: (root: string, scratch: string) => Promise<unknown>,
): Promise<string> {
  const hash = createHash('sha256').update(inputs.join()).digest('hex').slice(0, 16);
  const cache = join(homedir(), '.cache/gnt');
  const tree = join(cache, `${name}-${hash}`);
  const isThere = await access(tree).then(
    () => true,
    () => false,
  );
  if (isThere) return tree;
  await mkdir(cache, { recursive: true });
  const unfinished = await mkdtemp(`${tree}.`);
  try {
    await make(join(unfinished, 'root'), unfinished);
    // Another process may have been faster; its tree is as good.
    await rename(join(unfinished, 'root'), tree).catch(() => undefined);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  return tree;
}

/** The root of a Debian with these packages, as `cachedTree`. */
export function debianTree(
  name: string,
  packages: readonly string[],
  options: readonly string[] = [],
): Promise<string> {
  const suite = 'bookworm';
  return cachedTree(name, [suite, ...packages, ...options], (root) =>
    run(
      'mmdebstrap',
      [
        ...['--mode=root', '--variant=minbase', '--format=directory'],
        `--include=${packages.join(',')}`,
        '--aptopt=APT::Install-Recommends "false"',
        ...options,
        ...[suite, root, ...chooseAptSources(readAptSources())],
      ],
      { timeoutMs: BUILD_TIMEOUT_MS },
    ),
  );
}
