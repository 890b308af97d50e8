import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type HookFile, MAX_HOOK_DOCUMENTS } from '../contract/hooks.ts';
import { AppError, messageOf, systemCodeOf } from '../errors/app-error.ts';
import { MIB } from '../units/bytes.ts';
import { readBounded } from './read-bounded.ts';

export interface HookFolderOptions {
  /**
   * Not where the folder's owner is not trusted with what else there is: what it links to is no
   * part of it.
   */
  readonly followLinks: boolean;
  /** A folder that is missing holds none. */
  readonly mayBeMissing: boolean;
}

/** As `hookFile` has it. */
const MAX_DOCUMENT_BYTES = MIB;
/** Of `readBounded`: something else, too large, a link. */
const NO_DOCUMENT = new Set(['EINVAL', 'EFBIG', 'ELOOP']);

/**
 * The hook documents of a folder in the order of their names, by code unit. They are bytes here.
 * @throws AppError VALIDATION when they are too many, FILE_UNREADABLE
 */
export async function readHookFolder(
  folder: string,
  options: HookFolderOptions,
): Promise<HookFile[]> {
  const names = (await listNames(folder, options)).filter((name) => /\.ya?ml$/.test(name)).sort();
  if (names.length > MAX_HOOK_DOCUMENTS) {
    throw new AppError(
      'VALIDATION',
      `${folder} holds ${names.length} hook documents, ${MAX_HOOK_DOCUMENTS} are possible`,
    );
  }
  return Promise.all(
    names.map(async (name) => ({ name, content: await readContent(join(folder, name), options) })),
  );
}

async function listNames(
  folder: string,
  { followLinks, mayBeMissing }: HookFolderOptions,
): Promise<string[]> {
  try {
    if (!followLinks && !(await lstat(folder)).isDirectory()) return [];
    return await readdir(folder);
  } catch (error) {
    if (mayBeMissing && systemCodeOf(error) === 'ENOENT') return [];
    throw unreadable(folder, error);
  }
}

async function readContent(path: string, options: HookFolderOptions): Promise<string> {
  try {
    return (await readBounded(path, MAX_DOCUMENT_BYTES, options)).toString('base64');
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown): AppError {
  const isOther = NO_DOCUMENT.has(systemCodeOf(error) ?? '');
  const reason = isOther ? 'not a regular file of at most 1 MiB' : messageOf(error);
  return new AppError('FILE_UNREADABLE', `hooks ${path}: ${reason}`, {
    hint: 'hook documents are regular files of at most 1 MiB, in a folder that can be read',
    cause: error,
  });
}
