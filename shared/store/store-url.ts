import { AppError } from '../errors/app-error.ts';

/** Where a Redis is: `redis://…`, `rediss://…`, `unix:/path`, or the sentinels that know. */
export type RedisServer = (
  | ({
      /** The URL; that of a unix socket does not say who logs in. */
      readonly url: string;
    } & Login)
  | ({
      readonly sentinels: readonly { readonly host: string; readonly port: number }[];
      readonly name: string;
    } & Login)
) & {
  /** How many replicas have to have a write before it counts; none of them where not given. */
  readonly replicas?: number;
};

interface Login {
  /** A user of the server's ACL; `default` if it is not given. */
  readonly username?: string;
  readonly password?: string | undefined;
}

/**
 * Whether what the server says is written may be taken back: its Sentinels make a master of a
 * replica that lacks it, and a master that was cut off goes on answering those who reach it.
 */
export function mayTakeBack(server: RedisServer): boolean {
  return 'sentinels' in server && server.replicas === undefined;
}

const MAX_URL_LENGTH = 2048;
const MAX_SENTINELS = 16;
const DEFAULT_SENTINEL_PORT = 26_379;
/** One digit, not zero: nobody waits for more copies of a cluster's records. */
const REPLICAS = /\?replicas=([1-9])$/;

/**
 * The URL of a cluster's store: `redis://[user[:password]@]host[:port][/database]`, `rediss://…` by
 * TLS, `unix:/path` or `unix://[user]:password@/path`, or
 * `sentinel://[[user]:password@]host[:port],…/name` with the user and the password of the Redis
 * that the sentinels watch. `?replicas=N` at the end of each: what counts as written.
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

/** The URL as it may be shown and logged: without user and password. */
export function describeStoreUrl(text: string): string {
  const shown = text.slice(0, MAX_URL_LENGTH);
  // All up to the last @ is hidden: a password that was not encoded may have one.
  const at = shown.lastIndexOf('@');
  const scheme = /^[a-z]*:?(?:\/\/)?/.exec(shown)?.[0] ?? '';
  return at === -1 ? shown : scheme + shown.slice(at + 1);
}

/** The path of `unix:/path` and `unix:///path`. */
export function socketPathOf(url: string): string {
  return url.slice('unix:'.length).replace(/^\/\/(?=\/)/, '');
}

function isRedisUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { hostname, pathname, search, hash } = new URL(text);
  // What follows a question mark would become options of the client.
  return hostname !== '' && /^(\/\d{0,4})?$/.test(pathname) && search === '' && hash === '';
}

function parseSocket(text: string): RedisServer | undefined {
  const [, user = '', password, path] = /^unix:\/\/([^:@/]*):(.+)@(\/.*)$/.exec(text) ?? [];
  const url = path === undefined ? text : `unix:${path}`;
  // Two slashes are before who logs in.
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
    return text; // a percent sign that encodes nothing is one
  }
}
