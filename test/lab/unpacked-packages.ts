import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import { cachedTree } from './cached-tree.ts';

/**
 * Unpacks the files of Debian packages without installation, once, and keeps them in the build
 * cache.
 * @returns the folder; do not write below it
 */
function unpackedPackages(name: string, packages: readonly string[]): Promise<string> {
  return cachedTree(name, packages, async (root, scratch) => {
    const archives = join(scratch, 'archives');
    await mkdir(archives);
    await run('apt-get', ['download', '-q', ...packages], { cwd: archives });
    for (const file of await readdir(archives))
      await run('dpkg', ['-x', join(archives, file), root]);
  });
}

/** Returns UEFI firmware for QEMU, with the layout of the Debian package. */
export async function ovmf(): Promise<{ codePath: string; variablesPath: string }> {
  const folder = join(await unpackedPackages('ovmf', ['ovmf']), 'usr/share/OVMF');
  return {
    codePath: join(folder, 'OVMF_CODE_4M.fd'),
    variablesPath: join(folder, 'OVMF_VARS_4M.fd'),
  };
}

/** Returns a program that makes ISO images. `libraries` is for LD_LIBRARY_PATH. */
export async function xorriso(): Promise<{ path: string; libraries: string }> {
  const packages = ['xorriso', 'libisoburn1', 'libisofs6', 'libburn4', 'libjte2', 'libreadline8'];
  const root = join(await unpackedPackages('xorriso', packages), 'usr');
  return { path: join(root, 'bin/xorriso'), libraries: join(root, 'lib/x86_64-linux-gnu') };
}

/** Returns the folder of Debian's network installer, with `linux` and `initrd.gz`. */
export async function debianInstaller(): Promise<string> {
  const name = 'debian-installer-12-netboot-amd64';
  return join(
    await unpackedPackages(name, [name]),
    'usr/lib/debian-installer/images/12/amd64/text/debian-installer/amd64',
  );
}

/** Returns User Mode Linux and the folder of its drivers. */
export async function userModeLinux(): Promise<{ kernel: string; modules: string }> {
  const root = join(await unpackedPackages('user-mode-linux', ['user-mode-linux']), 'usr');
  const releases = join(root, 'lib/uml/modules');
  const [release = ''] = await readdir(releases);
  return {
    kernel: join(root, 'bin/linux.uml'),
    modules: join(releases, release, 'kernel/drivers'),
  };
}
