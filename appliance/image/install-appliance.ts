import {
  chmod,
  copyFile,
  link,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ApplianceManifest } from '#shared/contract/appliance-manifest.ts';
import type { HookFile } from '#shared/contract/hooks.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { MANIFEST_NAME, readManifest, verifyAppliance } from './manifest.ts';
import { addHooks } from './own-hooks.ts';

/**
 * Installs a cached appliance as one whole directory. Files are hard links where the file system
 * allows, so that many roots need no space. An equal appliance stays.
 * @param hooks added to the appliance; the cached one has none
 */
export async function installAppliance(
  cached: string,
  applianceDir: string,
  hooks: readonly HookFile[] = [],
): Promise<ApplianceManifest> {
  const { manifest, changed } = await prepare(cached, hooks);
  const parent = dirname(applianceDir);
  const name = basename(applianceDir);
  await mkdir(parent, { recursive: true });
  // Left-overs of a killed install remain even when the appliance is equal, if it was killed after
  // its last rename.
  await removeLeftovers(parent, name);
  if (await isSame(applianceDir, manifest)) return manifest;
  const fresh = join(parent, `.${name}.new-${process.pid}`);
  const old = join(parent, `.${name}.old-${process.pid}`);
  await mkdir(fresh);
  await chmod(fresh, 0o755);
  const files = [manifest.kernel.name, manifest.initrd.name, manifest.root.name, MANIFEST_NAME];
  for (const file of files) {
    const bytes = changed.get(file);
    if (bytes === undefined) await linkOrCopy(join(cached, file), join(fresh, file));
    else await writeFile(join(fresh, file), bytes, { mode: 0o644 });
  }
  await rename(applianceDir, old).catch((error: unknown) => {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
  });
  await rename(fresh, applianceDir);
  await rm(old, { recursive: true, force: true });
  return manifest;
}

interface Prepared {
  readonly manifest: ApplianceManifest;
  /** Files that differ from the cached ones, by name. */
  readonly changed: ReadonlyMap<string, string | Buffer>;
}

async function prepare(cached: string, hooks: readonly HookFile[]): Promise<Prepared> {
  const plain = await readManifest(cached);
  if (hooks.length === 0) return { manifest: plain, changed: new Map() };
  const { name } = plain.initrd;
  const { manifest, initrd } = addHooks(plain, await readFile(join(cached, name)), hooks);
  const text = `${JSON.stringify(manifest, null, 1)}\n`;
  return {
    manifest,
    changed: new Map<string, string | Buffer>([
      [name, initrd],
      [MANIFEST_NAME, text],
    ]),
  };
}

async function isSame(applianceDir: string, manifest: ApplianceManifest): Promise<boolean> {
  try {
    const found = await verifyAppliance(applianceDir);
    return JSON.stringify(found) === JSON.stringify(manifest);
  } catch {
    // A missing or damaged appliance is replaced.
    return false;
  }
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    const code = systemCodeOf(error);
    if (code !== 'EXDEV' && code !== 'EPERM' && code !== 'EMLINK') throw error;
    await copyFile(from, to);
    await chmod(to, 0o644);
  }
}

async function removeLeftovers(parent: string, name: string): Promise<void> {
  for (const found of await readdir(parent)) {
    if (found.startsWith(`.${name}.new-`) || found.startsWith(`.${name}.old-`))
      await rm(join(parent, found), { recursive: true, force: true });
  }
}
