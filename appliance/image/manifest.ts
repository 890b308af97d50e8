import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type ApplianceManifest, applianceManifest } from '#shared/contract/appliance-manifest.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';

export const MANIFEST_NAME = 'manifest.json';
type ManifestFile = ApplianceManifest['kernel'];

const REBUILD_HINT = 'build it again: gnt-appliance build';

export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: MIB }), hash);
  return hash.digest('hex');
}

export async function describeFile(directory: string, name: string): Promise<ManifestFile> {
  const path = join(directory, name);
  return { name, sizeBytes: (await stat(path)).size, sha256: await hashFile(path) };
}

/**
 * @throws AppError APPLIANCE_MISSING, or APPLIANCE_CORRUPT when the manifest cannot be understood
 */
export async function readManifest(directory: string): Promise<ApplianceManifest> {
  const path = join(directory, MANIFEST_NAME);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    throw new AppError('APPLIANCE_MISSING', `there is no appliance in ${directory}`, {
      hint: 'build it: gnt-appliance build',
      cause: error,
    });
  }
  try {
    return applianceManifest.parse(JSON.parse(text));
  } catch (error) {
    throw new AppError('APPLIANCE_CORRUPT', `${path}: not a manifest`, {
      hint: REBUILD_HINT,
      cause: error,
    });
  }
}

/**
 * Compares every file of an appliance with its manifest.
 * @throws AppError APPLIANCE_MISSING, APPLIANCE_CORRUPT that names the file
 */
export async function verifyAppliance(directory: string): Promise<ApplianceManifest> {
  const manifest = await readManifest(directory);
  for (const expected of [manifest.kernel, manifest.initrd, manifest.root]) {
    const path = join(directory, expected.name);
    const found = await describeFile(directory, expected.name).catch((error: unknown) => {
      throw new AppError('APPLIANCE_CORRUPT', `${path}: ${messageOf(error)}`, {
        hint: REBUILD_HINT,
        cause: error,
      });
    });
    if (found.sizeBytes !== expected.sizeBytes)
      throw corrupt(
        `${path} has ${found.sizeBytes} bytes, the manifest says ${expected.sizeBytes}`,
      );
    if (found.sha256 !== expected.sha256)
      throw corrupt(`${path} has SHA-256 ${found.sha256}, the manifest says ${expected.sha256}`);
  }
  return manifest;
}

function corrupt(message: string): AppError {
  return new AppError('APPLIANCE_CORRUPT', message, { hint: REBUILD_HINT });
}
