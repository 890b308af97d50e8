import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type HookDocument,
  type HookFile,
  type HookSource,
  MAX_HOOK_DOCUMENTS,
  MAX_HOOKS_BYTES,
} from '#shared/contract/hooks.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { sortHooks } from '../instances/hook-files.ts';
import { readBounded } from './read-bounded.ts';

/** As `hookFile` has it. */
const MAX_DOCUMENT_BYTES = MIB;

export interface HookPlaces {
  /** The cluster's folder. */
  readonly clusterDir: string;
  /** The OS definition. */
  readonly osPath: string | null;
  /** The instance's own. */
  readonly instance: readonly HookFile[];
}

/**
 * All hooks of an installation in the order in which they are run: cluster, OS definition, instance, by name within each. They are
 * bytes here: only the appliance opens them.
 * @throws AppError VALIDATION when they are too many or too large, FILE_UNREADABLE
 */
export async function collectHooks(places: HookPlaces): Promise<HookDocument[]> {
  const { clusterDir, osPath, instance } = places;
  const documents = [
    ...(await readFolder('cluster', clusterDir, { followLinks: true })),
    // What a definition links to is no part of it.
    ...(osPath === null
      ? []
      : await readFolder('os', join(osPath, 'hooks'), { followLinks: false })),
    ...instance.map((file) => ({ source: 'instance' as const, ...file })),
  ];
  const bytes = documents.reduce((sum, { content }) => sum + (content.length / 4) * 3, 0);
  if (bytes <= MAX_HOOKS_BYTES) return documents;
  throw new AppError(
    'VALIDATION',
    `the hooks of this installation have ${Math.ceil(bytes)} bytes, ${MAX_HOOKS_BYTES} are possible`,
  );
}

async function readFolder(
  source: HookSource,
  folder: string,
  options: { readonly followLinks: boolean },
): Promise<HookDocument[]> {
  const names = (await listNames(folder, options)).filter((name) => /\.ya?ml$/.test(name));
  if (names.length > MAX_HOOK_DOCUMENTS) {
    throw new AppError(
      'VALIDATION',
      `${folder} holds ${names.length} hook documents, ${MAX_HOOK_DOCUMENTS} are possible`,
    );
  }
  const files = sortHooks(names.map((name) => ({ name })));
  return Promise.all(
    files.map(async ({ name }) => ({
      source,
      name,
      content: await readContent(join(folder, name), options),
    })),
  );
}

async function listNames(
  folder: string,
  { followLinks }: { readonly followLinks: boolean },
): Promise<string[]> {
  try {
    if (!followLinks && !(await lstat(folder)).isDirectory()) return [];
    return await readdir(folder);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw unreadable(folder, error);
  }
}

async function readContent(
  path: string,
  options: { readonly followLinks: boolean },
): Promise<string> {
  try {
    return (await readBounded(path, MAX_DOCUMENT_BYTES, options)).toString('base64');
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown): AppError {
  return new AppError('FILE_UNREADABLE', `hooks ${path}: ${messageOf(error)}`, {
    hint: 'hook documents are regular files of at most 1 MiB',
    cause: error,
  });
}
