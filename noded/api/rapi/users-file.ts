import { createHash, timingSafeEqual } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { MIB } from '#shared/units/bytes.ts';
import { parseUserOptions, UNKNOWN_OPTION, type UserOptions } from './user-options.ts';

/** Part of every password digest, so that Ganeti's users files work here and the reverse. */
export const REALM = 'Ganeti Remote API';
/**
 * Stands in for an unknown user's digest, so that the check takes the same time as for a wrong
 * password.
 */
const NOBODY = Buffer.alloc(16);
/** Room for many thousand users. */
const MAX_FILE_BYTES = MIB;

export interface RapiUser extends UserOptions {
  readonly name: string;
}
interface StoredUser extends RapiUser {
  /** MD5 of `name:realm:password`, H(A1) of RFC 2617. */
  readonly digest: Buffer;
}

interface ParsedUsers {
  readonly users: ReadonlyMap<string, StoredUser>;
  /** Lines that define no user, with the reason but without their content. */
  readonly refused: readonly { readonly line: number; readonly reason: string }[];
}

/**
 * Parses lines in Ganeti's format, `name {HA1}digest [options]`, without readable passwords. Pure.
 */
export function parseUsers(text: string): ParsedUsers {
  const users = new Map<string, StoredUser>();
  const refused: { line: number; reason: string }[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    const [name = '', password = '', ...words] = line.trim().split(/\s+/);
    if (name === '' || name.startsWith('#')) continue;
    const digest = /^\{ha1\}([0-9a-f]{32})$/i.exec(password)?.[1];
    const options = parseUserOptions(words.join(',').split(',').filter(Boolean));
    if (digest === undefined || options === undefined) {
      const reason = options === undefined ? UNKNOWN_OPTION : 'the password is not an {HA1} digest';
      refused.push({ line: index + 1, reason });
      continue;
    }
    users.set(name, { name, ...options, digest: Buffer.from(digest, 'hex') });
  }
  return { users, refused };
}

/**
 * Holds the users of the remote API. Reads the file again after each change; an unreadable file has
 * no users.
 */
export class UsersFile {
  readonly #path: string;
  readonly #logger: Logger;
  #version = '';
  #users: ReadonlyMap<string, StoredUser> = new Map();

  constructor(path: string, logger: Logger) {
    this.#path = path;
    this.#logger = logger;
  }

  /** Returns the user; undefined if the name or the password is wrong, without telling which. */
  async authenticate(name: string, password: string): Promise<RapiUser | undefined> {
    await this.refresh();
    const user = this.#users.get(name);
    const given = createHash('md5').update(`${name}:${REALM}:${password}`).digest();
    const isRight = timingSafeEqual(given, user?.digest ?? NOBODY);
    return isRight ? user : undefined;
  }

  /** Returns whether the user still has the same password and options. */
  async isCurrent(user: RapiUser): Promise<boolean> {
    await this.refresh();
    return isDeepStrictEqual(this.#users.get(user.name), user);
  }

  async refresh(): Promise<void> {
    try {
      const { mtimeMs, ctimeMs, size, ino, mode } = await stat(this.#path);
      const version = [mtimeMs, ctimeMs, size, ino].join(' ');
      if (version === this.#version) return;
      if (size > MAX_FILE_BYTES) throw new Error(`longer than ${MAX_FILE_BYTES} bytes`);
      const { users, refused } = parseUsers(await readFile(this.#path, 'utf8'));
      this.#take(users, version);
      for (const line of refused) this.#logger.warn('rapi.user-refused', line);
      if ((mode & 0o077) !== 0) {
        this.#logger.warn('rapi.users-readable', { file: this.#path, hint: 'chmod 0600' });
      }
    } catch (error) {
      const version = systemCodeOf(error) ?? 'unreadable';
      if (version === this.#version) return;
      this.#take(new Map(), version);
      this.#logger.warn('rapi.users-unreadable', { file: this.#path, err: error });
    }
  }

  #take(users: ReadonlyMap<string, StoredUser>, version: string): void {
    this.#users = users;
    this.#version = version;
    this.#logger.info('rapi.users', { file: this.#path, users: users.size });
  }
}
