import { lstatSync, readdirSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';

/** Files of a folder with content, in which other things lie as well. */
const MAX_FILES = 5000;
const MAX_DEPTH = 8;

/**
 * What a file of a folder is by the part of the folder that it lies in; null: what it says itself.
 */
export type Section = 'bootenvs' | 'templates' | 'params' | 'profiles';
export const SECTIONS: readonly Section[] = ['bootenvs', 'templates', 'params', 'profiles'];

export interface ContentFile {
  readonly path: string;
  readonly section: Section | null;
  /** Its path below its section, with slashes: a template is called by it. */
  readonly name: string;
}

export interface FoundFiles {
  readonly files: readonly ContentFile[];
  /** Parts of a folder that mean nothing here, as dr-provision's tasks and its meta.yaml. */
  readonly leftOut: readonly string[];
}

/**
 * The files of a path: itself, or those of a folder as dr-provision lays one out, or of one of its
 * parts. Links are followed nowhere.
 * @throws AppError FILE_UNREADABLE, VALIDATION
 */
export function listContentFiles(path: string): FoundFiles {
  if (!isFolder(path))
    return { files: [{ path, section: null, name: basename(path) }], leftOut: [] };
  const own = SECTIONS.find((section) => section === basename(path));
  if (own !== undefined) return { files: filesOf(path, own), leftOut: [] };
  const names = readFolder(path);
  const found = SECTIONS.filter((section) => names.includes(section));
  if (found.length === 0) {
    throw new AppError('VALIDATION', `${path} contains none of ${SECTIONS.join('/, ')}/`, {
      hint: 'Give a folder in the layout of dr-provision content, or single files',
    });
  }
  return {
    files: found.flatMap((section) => filesOf(join(path, section), section)),
    leftOut: names.filter(
      (name) =>
        !found.some((one) => one === name) &&
        (isFolder(join(path, name)) || /\.(ya?ml|json)$/i.test(name)),
    ),
  };
}

function filesOf(folder: string, section: Section): readonly ContentFile[] {
  const files: ContentFile[] = [];
  const walk = (at: string, depth: number): void => {
    for (const name of readFolder(at)) {
      const path = join(at, name);
      if (isFolder(path)) {
        if (depth === MAX_DEPTH) throw refusal(`${path} is nested too deeply`);
        walk(path, depth + 1);
      } else if (lstatSync(path).isFile()) {
        files.push({ path, section, name: relative(folder, path).replaceAll(sep, '/') });
      }
      if (files.length > MAX_FILES)
        throw refusal(`${folder} contains more than ${MAX_FILES} files`);
    }
  };
  walk(folder, 1);
  return files;
}

/** Reads a folder without hidden names, which are editors' and version control's. */
function readFolder(path: string): readonly string[] {
  return attempt(path, () => readdirSync(path))
    .filter((name) => !name.startsWith('.'))
    .sort();
}

function isFolder(path: string): boolean {
  return attempt(path, () => lstatSync(path)).isDirectory();
}

function attempt<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === undefined) throw error;
    const reason = code === 'ENOENT' ? 'no such file or folder' : code;
    throw new AppError('FILE_UNREADABLE', `${path} cannot be read: ${reason}`, {
      details: { file: path },
      hint: 'Check the name and the permissions of the file',
      cause: error,
    });
  }
}

function refusal(message: string): AppError {
  return new AppError('VALIDATION', message);
}
