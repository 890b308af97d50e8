import { AppError } from '../errors/app-error.ts';

/** The location of a Redis: `redis://…`, `rediss://…`, `unix:/path`, or Sentinels that know it. */
export type RedisServer = (
  | ({
      /** Without the user and password of a unix socket. */
      readonly url: string;
    } & Login)
  | ({
      readonly sentinels: readonly { readonly host: string; readonly port: number }[];
      readonly name: string;
    } & Login)
) & {
  /** Replicas that must have a write before it counts; none by default. */
  readonly replicas?: number;
};

interface Login {
  /** A user of the server's ACL; `default` if absent. */
  readonly username?: string;
  readonly password?: string | undefined;
}

/**
 * Returns whether acknowledged writes may be reverted: Sentinels may promote a replica that lacks
 * them, and an isolated master still answers clients that reach it.
 */
export function mayTakeBack(server: RedisServer): boolean {
  return 'sentinels' in server && server.replicas === undefined;
}

const MAX_URL_LENGTH = 2048;
const MAX_SENTINELS = 16;
const DEFAULT_SENTINEL_PORT = 26_379;
/** One digit, not zero: more copies of a cluster's records are not useful. */
const REPLICAS = /\?replicas=([1-9])$/;

/**
 * Parses the URL of a cluster's store: `redis://[user[:password]@]host[:port][/database]`,
 * `rediss://…` by TLS, `unix:/path` or `unix://[user]:password@/path`, or
 * `sentinel://[[user]:password@]host[:port],…/name` with the user and the password of the Redis
 * that the sentinels watch. Each may end in `?replicas=N`.
 * @throws AppError USAGE that names the URL, without its password
 */
export function parseStoreUrl(given: string): RedisServer {
  const replicas = REPLICAS.exec(given)?.[1];
  const server = parseServer(given.replace(REPLICAS, ''));
  if (server === undefined) throw notStoreUrl(given);
  return replicas === undefined ? server : { ...server, replicas: Number(replicas) };
}

function parseServer(text: string): RedisServer | undefined {
  const scheme = /^([a-z]+):/.exec(text)?.[1];
  if (text.length <= MAX_URL_LENGTH && !/[\s\p{Cc}]/u.test(text)) {
    if (scheme === 'unix') return parseSocket(text);
    if ((scheme === 'redis' || scheme === 'rediss') && isRedisUrl(text)) return { url: text };
    if (scheme === 'sentinel') return parseSentinels(text);
  }
  return undefined;
}

function notStoreUrl(text: string): AppError {
  return new AppError('USAGE', `--store: '${describeStoreUrl(text)}' is not a store URL`, {
    hint: 'Write redis://HOST[:PORT][/DATABASE], rediss://… for TLS, unix:/PATH, or sentinel://HOST:PORT,HOST:PORT/NAME, each optionally with ?replicas=N. Passwords: redis://:PASSWORD@HOST, redis://USER:PASSWORD@HOST or unix://USER:PASSWORD@/PATH',
  });
}

/** Returns the URL for display and logs: without user and password. */
export function describeStoreUrl(text: string): string {
  const shown = text.slice(0, MAX_URL_LENGTH);
  // Hide everything up to the last @: a password may have an unencoded one.
  const at = shown.lastIndexOf('@');
  const scheme = /^[a-z]*:?(?:\/\/)?/.exec(shown)?.[0] ?? '';
  return at === -1 ? shown : scheme + shown.slice(at + 1);
}

export function socketPathOf(url: string): string {
  return url.slice('unix:'.length).replace(/^\/\/(?=\/)/, '');
}

function isRedisUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { hostname, pathname, search, hash } = new URL(text);
  // A query would become options of the client.
  return hostname !== '' && /^(\/\d{0,4})?$/.test(pathname) && search === '' && hash === '';
}

function parseSocket(text: string): RedisServer | undefined {
  const [, user = '', password, path] = /^unix:\/\/([^:@/]*):(.+)@(\/.*)$/.exec(text) ?? [];
  const url = path === undefined ? text : `unix:${path}`;
  // Two slashes introduce the user and password.
  if (!/^\/(?!\/)/.test(socketPathOf(url))) return undefined;
  return { url, ...(password !== undefined && loginOf(user, password)) };
}

function loginOf(user: string, password: string | undefined): Login {
  return {
    ...(user !== '' && { username: decode(user) }),
    password: password === undefined ? undefined : decode(password),
  };
}

function parseSentinels(text: string): RedisServer | undefined {
  const match = /^sentinel:\/\/(?:([^:@/]*):(.*)@)?([^/@]+)\/([A-Za-z0-9._-]{1,128})$/.exec(text);
  if (match === null) return undefined;
  const [, user = '', password, list = '', name = ''] = match;
  const sentinels = list.split(',').map(parseHost);
  if (sentinels.length > MAX_SENTINELS || sentinels.includes(undefined)) return undefined;
  return {
    sentinels: sentinels.filter((host) => host !== undefined),
    name,
    ...loginOf(user, password),
  };
}

function parseHost(text: string): { host: string; port: number } | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+))(?::(\d{1,5}))?$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3] ?? DEFAULT_SENTINEL_PORT);
  return host === undefined || port < 1 || port > 65_535 ? undefined : { host, port };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a plain percent sign
  }
}
