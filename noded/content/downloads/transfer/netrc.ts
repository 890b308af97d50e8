import { readFileSync } from 'node:fs';
import { Secret } from '#shared/secret/secret.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';

export interface Login {
  readonly user: string;
  readonly password: Secret;
}

interface Entry extends Login {
  /** Undefined for `default`. */
  readonly host: string | undefined;
}

/**
 * Finds the login for a URL in a netrc file (netrc(5)). The first match wins, and `default` matches
 * all. A machine is a host with any port and scheme, or, beyond netrc(5), exactly `host:port` or an
 * origin such as `https://host`.
 */
export function findLogin(netrc: string, url: URL): Login | undefined {
  const names: readonly (string | undefined)[] = [url.hostname, url.host, url.origin, undefined];
  return parseNetrc(netrc).find((entry) => names.includes(entry.host));
}

/** Returns '' for a missing file. @throws AppError FILE_UNREADABLE */
export function readNetrc(path: string | undefined): string {
  if (path === undefined) return '';
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return '';
    throw new AppError('FILE_UNREADABLE', `cannot read ${path}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function parseNetrc(text: string): readonly Entry[] {
  const words = wordsOf(text);
  const entries: Entry[] = [];
  let current: { host: string | undefined; user: string; password: string } | undefined;
  const finish = (): void => {
    if (current) entries.push({ ...current, password: new Secret(current.password) });
  };
  for (let at = 0; at < words.length; at += 1) {
    const value = words[at + 1] ?? '';
    if (words[at] === 'machine' || words[at] === 'default') {
      finish();
      const host = words[at] === 'machine' ? value : undefined;
      current = { host, user: '', password: '' };
      if (host !== undefined) at += 1;
    } else if (current && (words[at] === 'login' || words[at] === 'password')) {
      current[words[at] === 'login' ? 'user' : 'password'] = value;
      at += 1;
    }
  }
  finish();
  return entries;
}

/** Splits into words, without comments and macros, which extend from `macdef` to an empty line. */
function wordsOf(text: string): readonly string[] {
  const words: string[] = [];
  let isMacro = false;
  for (const line of text.split('\n')) {
    const own = line.trim().split(/\s+/);
    if (isMacro) isMacro = own[0] !== '';
    else if (own[0] === 'macdef') isMacro = true;
    else if (!own[0]?.startsWith('#')) words.push(...own.filter((word) => word !== ''));
  }
  return words;
}
