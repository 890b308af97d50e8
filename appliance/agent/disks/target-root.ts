import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  type Stats,
} from 'node:fs';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';

/** linux/fcntl.h; a descriptor that stands for the directory itself. Node has no name for it. */
const O_PATH = 0o10000000;
const DIRECTORY_FLAGS = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** The kernel follows as many links in one path (path_resolution(7)). */
const MAX_SYMLINKS = 40;
const NEW_DIRECTORY_MODE = 0o755;

/** A directory inside the root, held by a descriptor, so that nothing can be exchanged under it. */
export interface HeldDirectory {
  /** A path that leads into this very directory: `/proc/self/fd/N`. */
  readonly path: string;
  close(): void;
}

/**
 * Walks paths inside a directory as a process would that has it as its root: symbolic links,
 * absolute ones too, are resolved inside it, and `..` stops at it. Every step is one name in a
 * directory held open, never a longer path, so that no link that is there already leads outside.
 */
export class TargetRoot {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Opens the directory that these names lead to, and makes what is missing of it.
   * @throws AppError PACKAGE_INVALID when a name on the way is something else than a directory
   */
  openDirectory(components: readonly string[], options: { create: boolean }): HeldDirectory {
    const walk = new Walk(this.#path, options.create);
    try {
      walk.run(components);
      return walk.release();
    } catch (error) {
      walk.abandon();
      throw error;
    }
  }
}

class Walk {
  /** Descriptors from the root down to where we stand. */
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
    if (held === undefined) throw new Error('walk ended outside its root');
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

  /** Enters one name. @returns names to walk instead, when it is a symbolic link */
  #step(name: string, whole: readonly string[]): string[] {
    const path = `${this.#here()}/${name}`;
    const found = this.#lstatOrCreate(path, whole);
    if (found.isSymbolicLink()) return this.#follow(path, whole);
    if (!found.isDirectory())
      throw new AppError('PACKAGE_INVALID', `${whole.join('/')}: ${name} is not a directory`);
    this.#stack.push(openSync(path, DIRECTORY_FLAGS));
    return [];
  }

  #follow(path: string, whole: readonly string[]): string[] {
    this.#symlinks += 1;
    if (this.#symlinks > MAX_SYMLINKS)
      throw new AppError('PACKAGE_INVALID', `${whole.join('/')}: too many symbolic links`);
    const target = readlinkSync(path);
    if (target.startsWith('/')) while (this.#stack.length > 1) this.#up();
    return target.split('/');
  }

  #lstatOrCreate(path: string, whole: readonly string[]): Stats {
    const found = lstatIfThere(path);
    if (found) return found;
    if (!this.#mayCreate) throw new AppError('NOT_FOUND', `${whole.join('/')} is not there`);
    mkdirSync(path, NEW_DIRECTORY_MODE);
    return lstatSync(path);
  }
}

export function lstatIfThere(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
}
