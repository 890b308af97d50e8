import { constants } from 'node:fs';
import { type FileHandle, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type HookFile, MAX_HOOK_DOCUMENTS } from '../contract/hooks.ts';
import { AppError, messageOf, systemCodeOf } from '../errors/app-error.ts';
import { MIB } from '../units/bytes.ts';
import { readBounded } from './read-bounded.ts';

export interface HookFolderOptions {
  /** False for a folder whose owner must not see other files: links are refused. */
  readonly followLinks: boolean;
  /** A missing folder counts as empty. */
  readonly mayBeMissing: boolean;
  /** Selects names; by default those of YAML. */
  readonly accepts?: (name: string) => boolean;
}

/** The same limit as that of `hookFile`. */
const MAX_DOCUMENT_BYTES = MIB;
/** Codes of `readBounded` for another kind of file, a file that is too large, and a link. */
const NO_DOCUMENT = new Set(['EINVAL', 'EFBIG', 'ELOOP']);

/**
 * Reads the hook documents of a folder as bytes, in the order of their names by code unit.
 * @throws AppError VALIDATION for too many, FILE_UNREADABLE
 */
export async function readHookFolder(
  folder: string,
  options: HookFolderOptions,
): Promise<HookFile[]> {
  await using opened = await openHookFolder(folder, options);
  if (opened === null) return [];
  // A path to the open folder: its name may lead to another one a moment later.
  const at = `/proc/self/fd/${opened.fd}`;
  const all = await readdir(at).catch((error: unknown) => {
    throw unreadable(folder, error);
  });
  const names = all.filter(options.accepts ?? ((name) => /\.ya?ml$/.test(name))).sort();
  if (names.length > MAX_HOOK_DOCUMENTS) {
    throw new AppError(
      'VALIDATION',
      `${folder} holds ${names.length} hook documents, the limit is ${MAX_HOOK_DOCUMENTS}`,
    );
  }
  // The await keeps the folder open until all files are read.
  return await Promise.all(
    names.map(async (name) => ({
      name,
      content: await readContent(`${at}/${name}`, join(folder, name), options),
    })),
  );
}

/**
 * Opens the folder; null without one. If links are refused, anything but a folder counts as
 * missing.
 */
export async function openHookFolder(
  folder: string,
  { followLinks, mayBeMissing }: HookFolderOptions,
): Promise<FileHandle | null> {
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
  try {
    return await open(folder, O_RDONLY | O_DIRECTORY | (followLinks ? 0 : O_NOFOLLOW));
  } catch (error) {
    const code = systemCodeOf(error) ?? '';
    if (mayBeMissing && code === 'ENOENT') return null;
    if (!followLinks && ['ENOTDIR', 'ELOOP'].includes(code)) return null;
    throw unreadable(folder, error);
  }
}

/** @param shown the path for messages */
async function readContent(
  path: string,
  shown: string,
  options: HookFolderOptions,
): Promise<string> {
  try {
    return (await readBounded(path, MAX_DOCUMENT_BYTES, options)).toString('base64');
  } catch (error) {
    throw unreadable(shown, error);
  }
}

function unreadable(path: string, error: unknown): AppError {
  const isOther = NO_DOCUMENT.has(systemCodeOf(error) ?? '');
  const reason = isOther ? 'not a regular file of at most 1 MiB' : messageOf(error);
  return new AppError('FILE_UNREADABLE', `hooks ${path}: ${reason}`, {
    hint: 'Hook documents must be regular files of at most 1 MiB in a readable folder.',
    cause: error,
  });
}
