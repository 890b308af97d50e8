import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import {
  EXCLUDED_PATHS,
  INITRAMFS_MODULES,
  LVM_CONFIGURATION,
  MADE_DIRECTORIES,
  PACKAGES,
  REMOVED_LIBRARY_PREFIXES,
  REMOVED_PATHS,
  ROOT_MODULES,
} from './contents.ts';
import { makeDebianTree, type MirrorOptions } from './debian-tree.ts';
import { type ModuleTable, parseModulesDep, withDependencies } from './modules.ts';

/** Makes the output of package scripts independent of the day: bookworm's release. */
const SOURCE_DATE_EPOCH = '1686355200';

export interface DebianRoot {
  readonly kernelVersion: string;
  /** `name=version`, sorted. */
  readonly packages: readonly string[];
  /** Seconds; time of the newest file in a package. */
  readonly sourceDateSeconds: number;
  readonly modules: ModuleTable;
  readonly bzImage: Buffer;
}

/** Makes a Debian root tree at `path`, which must not exist, trimmed for the appliance. */
export async function makeDebianRoot(
  path: string,
  mirror: MirrorOptions,
  signal: AbortSignal,
): Promise<DebianRoot> {
  await makeDebianTree(path, {
    ...mirror,
    variant: 'essential',
    packages: PACKAGES,
    excludedPaths: EXCLUDED_PATHS,
    environment: { SOURCE_DATE_EPOCH },
    signal,
  });
  const described = await describe(path);
  await trim(path, described);
  return described;
}

async function describe(path: string): Promise<DebianRoot> {
  const [kernelVersion] = await readdir(join(path, 'usr/lib/modules'));
  if (kernelVersion === undefined) throw new Error('the Debian root has no kernel');
  const dep = await readFile(join(path, 'usr/lib/modules', kernelVersion, 'modules.dep'), 'utf8');
  return {
    kernelVersion,
    packages: parsePackages(await readFile(join(path, 'var/lib/dpkg/status'), 'utf8')),
    sourceDateSeconds: await newestFileSeconds(path),
    modules: parseModulesDep(dep),
    bzImage: await readFile(join(path, `boot/vmlinuz-${kernelVersion}`)),
  };
}

/** Returns `name=version` of every installed package in dpkg's status file. */
export function parsePackages(status: string): string[] {
  return status
    .split('\n\n')
    .filter((stanza) => /^Status: .* installed$/m.test(stanza))
    .map((stanza) => {
      const field = (name: string): string =>
        new RegExp(`^${name}: (.*)$`, 'm').exec(stanza)?.[1] ?? '';
      return `${field('Package')}=${field('Version')}`;
    })
    .sort();
}

/**
 * Returns the time of the newest packaged file. Generated files and directories have other times,
 * and are elsewhere.
 */
async function newestFileSeconds(path: string): Promise<number> {
  const { stdout } = await run('find', [
    ...['usr/bin', 'usr/sbin', 'usr/lib/modules'].map((name) => join(path, name)),
    ...['-type', 'f', '-not', '-name', 'modules.*', '-printf', '%T@\\n'],
  ]);
  return Math.floor(stdout.split('\n').reduce((newest, line) => Math.max(newest, Number(line)), 0));
}

async function trim(path: string, root: DebianRoot): Promise<void> {
  const remove = (name: string): Promise<void> =>
    rm(join(path, name), { recursive: true, force: true });
  const triplets = ['usr/lib/x86_64-linux-gnu', 'usr/lib/aarch64-linux-gnu'];
  for (const triplet of triplets) {
    for (const library of await readdir(join(path, triplet)).catch(() => [])) {
      if (REMOVED_LIBRARY_PREFIXES.some((prefix) => library.startsWith(prefix)))
        await remove(`${triplet}/${library}`);
    }
  }
  for (const name of REMOVED_PATHS) await remove(name);
  await trimModules(path, root);
  for (const name of MADE_DIRECTORIES) await mkdir(join(path, name), { recursive: true });
  // An empty, valid state for programs that look for users and packages.
  await writeFile(join(path, 'var/lib/dpkg/status'), '');
  await writeFile(join(path, 'etc/machine-id'), '');
  await writeFile(join(path, 'etc/hostname'), 'appliance\n');
  await writeFile(join(path, 'etc/lvm/lvmlocal.conf'), LVM_CONFIGURATION);
  await mkdir(join(path, 'opt/gnt'), { recursive: true });
}

async function trimModules(path: string, root: DebianRoot): Promise<void> {
  const directory = join(path, 'usr/lib/modules', root.kernelVersion);
  const kept = new Set(withDependencies(root.modules, [...ROOT_MODULES, ...INITRAMFS_MODULES]));
  for (const module of root.modules.keys()) {
    if (!kept.has(module)) await rm(join(directory, module));
  }
  await run('chroot', [path, '/sbin/depmod', root.kernelVersion]);
}
