import { copyFile, link, mkdir, readdir, rename, rm, chmod } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ApplianceManifest } from '#shared/contract/appliance-manifest.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { MANIFEST_NAME, readManifest, verifyAppliance } from './manifest.ts';

/**
 * Puts a cached appliance under a root as one whole directory. Files are linked where the file system allows, so that many roots
 * cost nothing; an appliance that is there and the same stays.
 */
export async function installAppliance(
  cached: string,
  applianceDir: string,
): Promise<ApplianceManifest> {
  const manifest = await readManifest(cached);
  if (await isSame(applianceDir, manifest)) return manifest;
  const parent = dirname(applianceDir);
  const name = basename(applianceDir);
  await mkdir(parent, { recursive: true });
  await removeLeftovers(parent, name);
  const fresh = join(parent, `.${name}.new-${process.pid}`);
  const old = join(parent, `.${name}.old-${process.pid}`);
  await mkdir(fresh);
  await chmod(fresh, 0o755);
  const files = [manifest.kernel.name, manifest.initrd.name, manifest.root.name, MANIFEST_NAME];
  for (const file of files) await linkOrCopy(join(cached, file), join(fresh, file));
  await rename(applianceDir, old).catch((error: unknown) => {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
  });
  await rename(fresh, applianceDir);
  await rm(old, { recursive: true, force: true });
  return manifest;
}

async function isSame(applianceDir: string, manifest: ApplianceManifest): Promise<boolean> {
  try {
    const found = await verifyAppliance(applianceDir);
    return JSON.stringify(found) === JSON.stringify(manifest);
  } catch {
    // Missing or damaged: either way it is replaced.
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
