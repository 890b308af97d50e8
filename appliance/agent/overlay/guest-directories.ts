import { lstatSync, readlinkSync, type Stats } from 'node:fs';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { JudgedEntry } from './judge-entry.ts';

/** Linux follows at most 40 links for a path (path_resolution(7)). */
const MAX_SYMLINKS = 40;
/** Bytes of remembered names, in an appliance with 512 MiB of memory. */
const MAX_REMEMBERED_BYTES = 64 * MIB;
/** Approximate size of a Map entry without its text. */
const ENTRY_BYTES = 100;
const OWNER_AND_MODE = 0o7777;

/**
 * State of a name in the guest's tree at its first mention in the package, or after the package
 * changed it.
 */
type Found =
  | { readonly kind: 'guest-directory' }
  | { readonly kind: 'link'; readonly target: string }
  /** Absent, not a directory, or created by the package. */
  | { readonly kind: 'other' };

const GUEST_DIRECTORY: Found = { kind: 'guest-directory' };
const OTHER: Found = { kind: 'other' };

interface Place {
  readonly key: string;
  readonly found: Found;
}

/**
 * Tells the guest's own directories from those of a package. Entries are judged ahead of tar, which
 * unpacks them meanwhile, so that the guest's tree is only read for names that no earlier entry can
 * have created.
 * - INVARIANTS: a key of `#found` is a path below the root, in latin1, without links among its
 *   directories. A link of the package is in it before tar creates the link.
 */
export class GuestDirectories {
  readonly #rootPath: string;
  readonly #found = new Map<string, Found>();
  #rememberedBytes = 0;

  constructor(rootPath: string) {
    this.#rootPath = rootPath;
  }

  /**
   * Records an entry, in the archive's order.
   * @returns the existing guest directory of a directory entry, also through links; else null
   * @throws AppError PACKAGE_INVALID for too many links and directories
   */
  take({ kind, components, target }: JudgedEntry): Stats | null {
    if (kind === 'directory') {
      const place = this.#resolve(components);
      return place.found === GUEST_DIRECTORY ? this.#lstat(place.key) : null;
    }
    const { key, found } = this.#resolve(components, { keepLast: true });
    if (kind === 'symlink') this.#remember(key, { kind: 'link', target: target ?? '' });
    else if (kind === 'hard-link') this.#replace(key, found, this.#linked(target ?? ''));
    else this.#replace(key, found, OTHER);
    return null;
  }

  #linked(target: string): Found {
    const { found } = this.#resolve(target.split('/'), { keepLast: true });
    return found.kind === 'link' ? found : OTHER;
  }

  #replace(key: string, found: Found, by: Found): void {
    if (found !== OTHER || by !== OTHER) this.#remember(key, by);
  }

  /**
   * Follows a path inside the root, its last link too unless `keepLast`. A path with too many links
   * is `other`: tar refuses it.
   */
  #resolve(names: readonly string[], { keepLast = false } = {}): Place {
    const pending = names.filter((name) => name !== '' && name !== '.').reverse();
    const path: Place[] = [];
    let symlinks = 0;
    for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
      if (name === '..') {
        path.pop();
        continue;
      }
      const parent = path.at(-1);
      const key = parent === undefined ? name : `${parent.key}/${name}`;
      const isLast = keepLast && pending.length === 0;
      const isParentGuest = parent === undefined || parent.found === GUEST_DIRECTORY;
      const found = this.#look(key, isParentGuest, !isLast);
      if (found.kind !== 'link' || isLast) {
        path.push({ key, found });
        continue;
      }
      symlinks += 1;
      if (symlinks > MAX_SYMLINKS) return { key, found: OTHER };
      if (found.target.startsWith('/')) path.length = 0;
      pending.push(...namesOf(found.target).reverse());
    }
    return path.at(-1) ?? { key: '.', found: GUEST_DIRECTORY };
  }

  /** @param mayRemember whether tar now creates a directory for an absent name */
  #look(key: string, isParentGuest: boolean, mayRemember: boolean): Found {
    const known = this.#found.get(key);
    if (known) return known;
    if (!isParentGuest) return OTHER;
    const stats = this.#lstat(key);
    const found = stats?.isSymbolicLink()
      ? { kind: 'link' as const, target: this.#readlink(key) }
      : stats?.isDirectory()
        ? GUEST_DIRECTORY
        : OTHER;
    if (mayRemember || found !== OTHER) this.#remember(key, found);
    return found;
  }

  #remember(key: string, found: Found): void {
    const targetBytes = found.kind === 'link' ? found.target.length : 0;
    this.#rememberedBytes += ENTRY_BYTES + key.length + targetBytes;
    if (this.#rememberedBytes > MAX_REMEMBERED_BYTES)
      throw new AppError(
        'PACKAGE_INVALID',
        `the package has too many links and directories: their names exceed ${MAX_REMEMBERED_BYTES / MIB} MiB`,
        { hint: 'Split it, or put the files into an OS image.' },
      );
    this.#found.set(key, found);
  }

  /** Returns null also for a path that is too long or damaged: tar reports it. */
  #lstat(key: string): Stats | null {
    try {
      return lstatSync(this.#pathOf(key));
    } catch {
      return null;
    }
  }

  #readlink(key: string): string {
    try {
      return readlinkSync(this.#pathOf(key), { encoding: 'buffer' }).toString('latin1');
    } catch {
      return '';
    }
  }

  #pathOf(key: string): Buffer {
    return Buffer.concat([Buffer.from(`${this.#rootPath}/`), Buffer.from(key, 'latin1')]);
  }
}

function namesOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.');
}

/** Formats owner and mode as `0:0 0755`. */
export function formatOwner({ uid, gid, mode }: Pick<Stats, 'uid' | 'gid' | 'mode'>): string {
  return `${uid}:${gid} 0${(mode & OWNER_AND_MODE).toString(8)}`;
}
