import { createHash } from 'node:crypto';
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { chooseAptSources, readAptSources } from '../../appliance/image/apt-sources.ts';
import { makeDebianTree } from '../../appliance/image/debian-tree.ts';

/**
 * Returns a folder that is made once and kept in the build cache.
 * @param inputs its cache key
 * @param make makes `root`, which does not exist yet, and may write beside it
 * @returns its path; do not write below it
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
    // Another process may have been faster; its tree is equivalent.
    await rename(join(unfinished, 'root'), tree).catch(() => undefined);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  return tree;
}

/** Returns a Debian root with these packages, as `cachedTree`. */
export function debianTree(
  name: string,
  packages: readonly string[],
  excludedPaths: readonly string[] = [],
): Promise<string> {
  return cachedTree(name, [...packages, ...excludedPaths], (root) =>
    makeDebianTree(root, {
      variant: 'minbase',
      packages,
      excludedPaths,
      sources: chooseAptSources(readAptSources()),
      proxyEnvironment: {},
    }),
  );
}
