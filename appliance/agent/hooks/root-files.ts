import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { type HeldDirectory, lstatIfThere, TargetRoot } from '../disks/target-root.ts';

export interface FileAttributes {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

const TEMPORARY_NAME = '.gnt-hook-file';
const CREATE_FLAGS =
  constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/** O_NONBLOCK: opening a FIFO in the image must not wait. */
const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const MAX_SYMLINKS = 40;
/** Largest editable file, such as account databases and hosts. */
const MAX_READ_BYTES = 16 * MIB;

interface Place {
  readonly directory: HeldDirectory;
  readonly path: string;
}

/**
 * Files below a root directory, as a process with this root sees them: symbolic links are followed
 * inside it, also the last one. Links of an image never lead outside.
 */
export class RootFiles {
  readonly #root: TargetRoot;

  constructor(rootPath: string) {
    this.#root = new TargetRoot(rootPath);
  }

  exists(path: string): boolean {
    try {
      return this.#at(path, (place) => lstatIfThere(place.path) !== null);
    } catch (error) {
      if (error instanceof AppError) return false;
      throw error;
    }
  }

  isDirectory(path: string): boolean {
    try {
      this.#root.openDirectory(path.split('/'), { create: false }).close();
      return true;
    } catch (error) {
      if (error instanceof AppError) return false;
      throw error;
    }
  }

  ownerOf(path: string): { uid: number; gid: number } {
    const held = this.#root.openDirectory(path.split('/'), { create: false });
    try {
      return statSync(held.path);
    } finally {
      held.close();
    }
  }

  /** @returns null when the file is missing */
  read(path: string): string | null {
    if (!this.exists(path)) return null;
    return this.#at(path, (place) => readRegular(place.path));
  }

  /** Replaces a file. Follows a link at the end of the path, unless `replaceLink` is set. */
  async write(
    path: string,
    content: string | Buffer,
    attributes: FileAttributes,
    options?: { readonly replaceLink: boolean },
  ): Promise<void> {
    await this.fill(path, attributes, async (fd) => writeFileSync(fd, content), options);
  }

  /**
   * Writes like `write`, with content that `produce` writes into the descriptor. The file gets its
   * name when it is complete.
   */
  async fill(
    path: string,
    attributes: FileAttributes,
    produce: (fd: number) => Promise<void>,
    options: { readonly replaceLink: boolean } = { replaceLink: false },
  ): Promise<void> {
    const place = this.#open(path, !options.replaceLink);
    const temporary = `${place.directory.path}/${TEMPORARY_NAME}`;
    try {
      rmSync(temporary, { force: true });
      const fd = openSync(temporary, CREATE_FLAGS, 0o600);
      try {
        await produce(fd);
        // The mode last: changing the owner clears set-user-id bits.
        fchownSync(fd, attributes.uid, attributes.gid);
        fchmodSync(fd, attributes.mode);
      } finally {
        closeSync(fd);
      }
      renameSync(temporary, place.path);
    } finally {
      rmSync(temporary, { force: true });
      place.directory.close();
    }
  }

  /** Changes a text and keeps the file's owner and mode. A missing file starts empty. */
  async edit(path: string, change: (text: string) => string, ifNew: FileAttributes): Promise<void> {
    const text = this.read(path);
    const attributes =
      text === null
        ? ifNew
        : this.#at(path, (place) => {
            const { mode, uid, gid } = statSync(place.path);
            return { mode: mode & 0o7777, uid, gid };
          });
    await this.write(path, change(text ?? ''), attributes);
  }

  list(path: string): string[] {
    if (!this.isDirectory(path)) return [];
    const held = this.#root.openDirectory(path.split('/'), { create: false });
    try {
      return readdirSync(held.path).sort();
    } finally {
      held.close();
    }
  }

  remove(path: string): void {
    if (!this.exists(path)) return;
    const place = this.#open(path, false);
    try {
      rmSync(place.path, { recursive: true, force: true });
    } finally {
      place.directory.close();
    }
  }

  /**
   * Creates a directory and its missing parents with these attributes. An existing directory gets
   * them too.
   */
  makeDirectory(path: string, attributes: FileAttributes): void {
    const components = path.split('/').filter((name) => name !== '' && name !== '.');
    for (const index of components.keys()) {
      const isLast = index === components.length - 1;
      const wasThere = this.isDirectory(components.slice(0, index + 1).join('/'));
      if (!wasThere) this.#makeOne(components.slice(0, index), components[index] ?? '');
      if (wasThere && !isLast) continue;
      const held = this.#root.openDirectory(components.slice(0, index + 1), { create: false });
      try {
        chownSync(held.path, attributes.uid, attributes.gid);
        chmodSync(held.path, attributes.mode);
      } finally {
        held.close();
      }
    }
  }

  #makeOne(parent: readonly string[], name: string): void {
    const held = this.#root.openDirectory(parent, { create: false });
    try {
      mkdirSync(`${held.path}/${name}`, 0o700);
    } finally {
      held.close();
    }
  }

  #at<T>(path: string, work: (place: Place) => T): T {
    const place = this.#open(path, true);
    try {
      return work(place);
    } finally {
      place.directory.close();
    }
  }

  /** Finds the directory that holds a path's target, and its name there. */
  #open(path: string, follow: boolean): Place {
    let components = path.split('/').filter((name) => name !== '');
    for (let links = 0; links < MAX_SYMLINKS; links += 1) {
      const name = components.at(-1);
      if (name === undefined || name === '..' || name === '.')
        throw new AppError('HOOK_FAILED', 'the path is not a file name');
      const parent = components.slice(0, -1);
      const directory = this.#root.openDirectory(parent, { create: false });
      const place = { directory, path: `${directory.path}/${name}` };
      if (!follow || lstatIfThere(place.path)?.isSymbolicLink() !== true) return place;
      const target = readlinkSync(place.path);
      directory.close();
      // Relative to the real directory of the link: the walk resolves `..` there, not in the text.
      components = [...(target.startsWith('/') ? [] : parent), ...target.split('/')].filter(
        (part) => part !== '',
      );
    }
    throw new AppError('HOOK_FAILED', 'the path has too many symbolic links');
  }
}

function readRegular(path: string): string {
  const fd = openSync(path, READ_FLAGS);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile() || stats.size > MAX_READ_BYTES)
      throw new AppError('HOOK_FAILED', 'not a regular file of at most 16 MiB');
    return readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
}
