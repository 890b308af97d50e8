import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { type ApplianceManifest, applianceManifest } from '#shared/contract/appliance-manifest.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { hashFile } from '#shared/files/hash-file.ts';
import { readBounded } from '#shared/files/read-bounded.ts';
import { MIB } from '#shared/units/bytes.ts';

export const MANIFEST_NAME = 'manifest.json';
type ManifestFile = ApplianceManifest['kernel'];

const REBUILD_HINT = 'Build it again: gnt-appliance build';
/** A usual manifest has some 20 KiB of package names. */
const MAX_MANIFEST_BYTES = 4 * MIB;

export async function describeFile(
  directory: string,
  name: string,
  signal?: AbortSignal,
): Promise<ManifestFile> {
  const path = join(directory, name);
  return { name, sizeBytes: (await stat(path)).size, sha256: await hashFile(path, signal) };
}

export interface VerifyOptions {
  /** The source, for messages; by default the directory. */
  readonly shown?: string;
  readonly hint?: string;
  readonly signal?: AbortSignal;
}

/** @throws AppError APPLIANCE_MISSING, or APPLIANCE_CORRUPT for an invalid manifest */
export async function readManifest(directory: string): Promise<ApplianceManifest> {
  return parseManifest(await readManifestText(directory, directory), directory);
}

/**
 * Reads the manifest without following a link.
 * @param shown the directory, for messages
 * @throws AppError APPLIANCE_MISSING; the system's error
 */
export async function readManifestText(directory: string, shown: string): Promise<string> {
  const options = { followLinks: false };
  try {
    const bytes = await readBounded(join(directory, MANIFEST_NAME), MAX_MANIFEST_BYTES, options);
    return bytes.toString('utf8');
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    throw new AppError('APPLIANCE_MISSING', `no appliance in ${shown}`, {
      hint: 'Build it: gnt-appliance build',
      cause: error,
    });
  }
}

/** @throws AppError APPLIANCE_CORRUPT */
export function parseManifest(text: string, shown: string): ApplianceManifest {
  try {
    return applianceManifest.parse(JSON.parse(text));
  } catch (error) {
    const path = join(shown, MANIFEST_NAME);
    throw new AppError('APPLIANCE_CORRUPT', `${path}: not a manifest${wrongField(error)}`, {
      hint: REBUILD_HINT,
      cause: error,
    });
  }
}

/** Describes the invalid field without its value, which may be secret. */
function wrongField(error: unknown): string {
  if (!(error instanceof z.ZodError)) return '';
  const [issue] = error.issues;
  if (issue === undefined) return '';
  const where = issue.path.length === 0 ? '' : `: ${issue.path.join('.')}`;
  if (issue.code === 'unrecognized_keys') return `${where}: unknown field`;
  return `${where}: ${issue.message}`;
}

/**
 * Compares every file of an appliance with its manifest. Does not report the actual content: a file
 * may hold a secret, and its digest would allow guessing a short one.
 * @throws AppError APPLIANCE_MISSING, APPLIANCE_CORRUPT that names the file
 */
export async function verifyAppliance(
  directory: string,
  { shown = directory, hint = REBUILD_HINT, signal }: VerifyOptions = {},
): Promise<ApplianceManifest> {
  const manifest = parseManifest(await readManifestText(directory, shown), shown);
  for (const expected of [manifest.kernel, manifest.initrd, manifest.root]) {
    const path = join(shown, expected.name);
    const corrupt = (what: string, cause?: unknown): AppError =>
      new AppError('APPLIANCE_CORRUPT', `${path}${what}`, { hint, cause });
    const found = await describeFile(directory, expected.name, signal).catch((error: unknown) => {
      throw corrupt(`: ${messageOf(error)}`, error);
    });
    if (found.sizeBytes !== expected.sizeBytes)
      throw corrupt(` has ${found.sizeBytes} bytes, but the manifest says ${expected.sizeBytes}`);
    if (found.sha256 !== expected.sha256) throw corrupt(' differs from its manifest');
  }
  return manifest;
}
