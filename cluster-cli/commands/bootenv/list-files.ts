import { lstatSync, readdirSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';

/** Files of a folder, including files without boot content. */
const MAX_FILES = 5000;
const MAX_DEPTH = 8;

/** Kind of a file's objects, from its folder; null: the file itself tells. */
export type Section = 'bootenvs' | 'templates' | 'params' | 'profiles';
export const SECTIONS: readonly Section[] = ['bootenvs', 'templates', 'params', 'profiles'];

export interface ContentFile {
  readonly path: string;
  readonly section: Section | null;
  /** Path below its section, with slashes. It is the ID of a template. */
  readonly name: string;
}

export interface FoundFiles {
  readonly files: readonly ContentFile[];
  /** Ignored parts of a folder, such as dr-provision's tasks and meta.yaml. */
  readonly leftOut: readonly string[];
}

/**
 * Lists the files of a path: the file itself, a folder in dr-provision's layout, or one of its
 * sections. Does not follow links.
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

/** Lists a folder without hidden names, which belong to editors and version control. */
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
