import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import { cachedTree } from '../lab/cached-tree.ts';

const top = join(import.meta.dirname, '../..');
const BUILD_TIMEOUT_MS = 30 * 60_000;

/** The last commit whose build makes one package, `gnt`. */
export const LAST_SINGLE_PACKAGE = '4b1bbb35';

/** Returns why an earlier package cannot be built from this clone; false if it can. */
export async function whyNoEarlier(commit: string): Promise<string | false> {
  try {
    await run('git', ['-C', top, 'cat-file', '-e', `${commit}^{commit}`]);
    return false;
  } catch {
    return `a shallow clone has no commit ${commit}`;
  }
}

/** Builds the packages of this checkout. @returns the folder, an archive for apt */
export async function presentPackages(folder: string): Promise<string> {
  await makePackage(top, folder);
  return folder;
}

/**
 * Builds the only package of an earlier commit, with its own sources, the npm packages installed
 * here, and a version below the present one. The build cache keeps the result.
 */
export async function earlierPackage(commit: string): Promise<string> {
  const folder = await cachedTree('package', [commit, top], async (root, scratch) => {
    const tree = join(scratch, 'tree');
    const made = join(scratch, 'made');
    await unpackCommit(commit, tree);
    await makePackage(tree, made);
    await mkdir(root);
    await rename(await lowerVersion(await findPackage(made), scratch), join(root, 'earlier.deb'));
  });
  return findPackage(folder);
}

/**
 * Unpacks a commit with hard links to node_modules, because npm would take symbolic links for
 * packages of other projects.
 */
async function unpackCommit(commit: string, tree: string): Promise<void> {
  await mkdir(tree);
  await run('sh', ['-c', 'git -C "$1" archive "$2" | tar -x -C "$3"', 'sh', top, commit, tree]);
  await run('cp', ['-al', join(top, 'node_modules'), join(tree, 'node_modules')]);
  // npm refuses to list a folder with packages that this commit does not know.
  const prune = ['prune', '--ignore-scripts', '--offline', '--no-audit', '--no-fund'];
  await run('npm', prune, { cwd: tree, timeoutMs: BUILD_TIMEOUT_MS });
  // The cache also has the bundle of the present commit.
  await rm(join(tree, 'node_modules/.cache'), { recursive: true, force: true });
}

function makePackage(from: string, folder: string): Promise<unknown> {
  return run(process.execPath, [join(from, 'scripts/package.ts'), folder], {
    timeoutMs: BUILD_TIMEOUT_MS,
    env: { PATH: process.env['PATH'] ?? '' },
  });
}

async function findPackage(folder: string): Promise<string> {
  const name = (await readdir(folder)).find((each) => each.endsWith('.deb'));
  if (name === undefined) throw new Error(`no package was made in ${folder}`);
  return join(folder, name);
}

/** Lowers the version: unreleased commits have the version of the next release. */
async function lowerVersion(deb: string, scratch: string): Promise<string> {
  const tree = join(scratch, 'unpacked');
  await run('dpkg-deb', ['-R', deb, tree]);
  const file = join(tree, 'DEBIAN/control');
  const control = await readFile(file, 'utf8');
  await writeFile(file, control.replace(/^(Version: .*)$/m, '$1~earlier'));
  const lowered = join(scratch, 'lowered.deb');
  await run('dpkg-deb', ['--root-owner-group', '-Znone', '--build', tree, lowered], {
    timeoutMs: BUILD_TIMEOUT_MS,
  });
  return lowered;
}
