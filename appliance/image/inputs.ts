import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { installDir } from '#shared/paths/install-dir.ts';
import { SUITE } from './apt-sources.ts';
import {
  EXCLUDED_PATHS,
  INITRAMFS_MODULES,
  LVM_CONFIGURATION,
  PACKAGES,
  REMOVED_LIBRARY_PREFIXES,
  REMOVED_PATHS,
  ROOT_MODULES,
} from './contents.ts';

const BUILDER_DIRECTORY = join(installDir, 'appliance/image');

export interface BuildInputs {
  readonly agentBundle: Buffer;
  readonly hooksBundle: Buffer;
  readonly nodePath: string;
  readonly sources: readonly string[];
}

/** Returns the key of the cached Debian part: its content, and the module that builds it. */
export async function hashBaseInputs(sources: readonly string[]): Promise<string> {
  const maker = await readFile(join(BUILDER_DIRECTORY, 'debian-root.ts'));
  return hashOf([
    maker,
    JSON.stringify({
      SUITE,
      PACKAGES,
      EXCLUDED_PATHS,
      REMOVED_PATHS,
      REMOVED_LIBRARY_PREFIXES,
      ROOT_MODULES,
      INITRAMFS_MODULES,
      LVM_CONFIGURATION,
      sources,
      architecture: process.arch,
    }),
  ]);
}

/** Returns the key of the build cache: all inputs, except the versions of the mirror's packages. */
export async function hashInputs(inputs: BuildInputs): Promise<string> {
  const parts: (Buffer | string)[] = [
    inputs.agentBundle,
    inputs.hooksBundle,
    await hashBaseInputs(inputs.sources),
  ];
  for (const name of (await readdir(BUILDER_DIRECTORY)).sort())
    parts.push(name, await readFile(join(BUILDER_DIRECTORY, name)));
  // The binary is 150 MB; its version and size tell two releases apart.
  parts.push(process.version, String((await stat(inputs.nodePath)).size));
  return hashOf(parts);
}

function hashOf(parts: readonly (Buffer | string)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\0');
  return hash.digest('hex');
}
