import { mkdir, readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import { cachedTree } from './cached-tree.ts';

const top = join(import.meta.dirname, '../..');
/** All of its programs that tests start. */
const PROGRAMS = ['gnt-noded', 'gnt-instance', 'gnt-cluster', 'gnt-node', 'gnt-os', 'gnt-job'];

/**
 * Returns the programs of an earlier commit, with the packages that are installed here.
 * @returns the folder of its programs; undefined if the history lacks the commit
 */
export async function earlierRelease(commit: string): Promise<string | undefined> {
  const known = await run('sh', ['-c', `git -C "$1" cat-file -e "$2^{commit}" || echo none`, 'sh', top, commit]); // prettier-ignore
  if (known.stdout !== '') return undefined;
  const tree = await cachedTree('release', [commit, top], async (root) => {
    await mkdir(root);
    await run('sh', ['-c', 'git -C "$1" archive "$2" | tar -x -C "$3"', 'sh', top, commit, root]);
    // One by one, because the bundle in `.cache` belongs to the present release.
    await mkdir(join(root, 'node_modules/.bin'), { recursive: true });
    const packages = await readdir(join(top, 'node_modules'));
    for (const name of packages.filter((each) => !each.startsWith('.')))
      await symlink(join(top, 'node_modules', name), join(root, 'node_modules', name));
    await symlink(join(top, 'node_modules/.bin/node'), join(root, 'node_modules/.bin/node'));
    await mkdir(join(root, 'programs-of-release'));
    for (const name of PROGRAMS)
      await symlink('../scripts/gnt', join(root, 'programs-of-release', name));
  });
  return join(tree, 'programs-of-release');
}
