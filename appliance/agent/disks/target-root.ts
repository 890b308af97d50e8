import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  type Stats,
} from 'node:fs';
import { AppError, isAppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';

/** linux/fcntl.h; a descriptor of the directory itself. Node has no constant for it. */
const O_PATH = 0o10000000;
const DIRECTORY_FLAGS = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Nested directories, each held open: as many as one path can name. */
const MAX_DEPTH = 2048;
/** Characters of a path in a message: a name in a tree may have any length. */
const MAX_SHOWN = 200;
/** Linux follows at most 40 links for a path (path_resolution(7)). */
const MAX_SYMLINKS = 40;
const NEW_DIRECTORY_MODE = 0o755;

/** A directory inside the root, held by a descriptor, so that it cannot be exchanged. */
export interface HeldDirectory {
  /** `/proc/self/fd/N`, which leads into this directory. */
  readonly path: string;
  close(): void;
}

/**
 * Walks paths inside a directory as a process with this root would: symbolic links, absolute ones
 * too, are resolved inside it, and `..` stops at it. Each step is one name in an open directory, so
 * that no existing link leads outside.
 */
export class TargetRoot {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Opens a directory and creates its missing parts.
   * @throws AppError PACKAGE_INVALID when a name on the way is not a directory, and errors of
   * `treeFault`
   */
  openDirectory(components: readonly string[], options: { create: boolean }): HeldDirectory {
    const walk = new Walk(this.#path, options.create);
    try {
      walk.run(components);
      return walk.release();
    } catch (error) {
      walk.abandon();
      throw treeFault(error, components);
    }
  }
}

/**
 * Converts system errors that an untrusted tree can cause: names that are too long, too many open
 * directories, a damaged or full file system.
 * @returns an AppError for a system error, other errors unchanged
 */
export function treeFault(error: unknown, components: readonly string[]): unknown {
  const code = systemCodeOf(error);
  if (code === undefined || isAppError(error)) return error;
  const [reason] = messageOf(error).split(',');
  const what = `${showPath(components)}: ${reason}`;
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new AppError('DISK_FULL', `no space left in the instance for ${what}`, {
      cause: error,
      hint: 'Give the instance a larger disk, or use an image with more free space.',
    });
  return new AppError('COMMAND_FAILED', `cannot use the instance's files: ${what}`, {
    cause: error,
    hint: 'Check the file system of the image, for example with fsck.',
  });
}

class Walk {
  readonly #stack: number[];
  readonly #mayCreate: boolean;
  #symlinks = 0;

  constructor(root: string, mayCreate: boolean) {
    this.#stack = [openSync(root, O_PATH | constants.O_DIRECTORY)];
    this.#mayCreate = mayCreate;
  }

  run(components: readonly string[]): void {
    const pending = [...components].reverse();
    for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
      if (name === '' || name === '.') continue;
      if (name === '..') this.#up();
      else pending.push(...this.#step(name, components).reverse());
    }
  }

  release(): HeldDirectory {
    const held = this.#stack.pop();
    if (held === undefined) throw new Error('the walk ended outside its root');
    this.abandon();
    return { path: `/proc/self/fd/${held}`, close: () => closeSync(held) };
  }

  abandon(): void {
    for (const fd of this.#stack.splice(0)) closeSync(fd);
  }

  #here(): string {
    return `/proc/self/fd/${this.#stack.at(-1)}`;
  }

  #up(): void {
    if (this.#stack.length > 1) closeSync(this.#stack.pop() as number); // checked: not empty
  }

  /** Enters one name. @returns names to walk instead, for a symbolic link */
  #step(name: string, whole: readonly string[]): string[] {
    const path = `${this.#here()}/${name}`;
    const found = this.#lstatOrCreate(path, whole);
    if (found.isSymbolicLink()) return this.#follow(path, whole);
    if (!found.isDirectory())
      throw new AppError(
        'PACKAGE_INVALID',
        `${showPath(whole)}: ${showPath([name])} is not a directory`,
      );
    if (this.#stack.length > MAX_DEPTH)
      throw new AppError('PACKAGE_INVALID', `${showPath(whole)}: nested too deeply`);
    this.#stack.push(openSync(path, DIRECTORY_FLAGS));
    return [];
  }

  #follow(path: string, whole: readonly string[]): string[] {
    this.#symlinks += 1;
    if (this.#symlinks > MAX_SYMLINKS)
      throw new AppError('PACKAGE_INVALID', `${showPath(whole)}: too many symbolic links`);
    const target = readlinkSync(path);
    if (target.startsWith('/')) while (this.#stack.length > 1) this.#up();
    return target.split('/');
  }

  #lstatOrCreate(path: string, whole: readonly string[]): Stats {
    const found = lstatIfThere(path);
    if (found) return found;
    if (!this.#mayCreate) throw new AppError('NOT_FOUND', `${showPath(whole)} does not exist`);
    mkdirSync(path, NEW_DIRECTORY_MODE);
    return lstatSync(path);
  }
}

function showPath(names: readonly string[]): string {
  const text = names.join('/');
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

export function lstatIfThere(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
}
