import type { RelayAuth } from '#shared/contract/relay.ts';

/** Names and values in turn. */
export type HeaderList = readonly string[];

/** A name that each server reads alike: some take `_` for `-`. */
const PLAIN_NAME = /^[a-z0-9-]{1,64}$/;
const PLAIN_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** RFC 9110, 7.6.1, and obsolete relatives. */
const HOP_BY_HOP = [
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings', 'content-length'],
];

/**
 * Headers of the guest that do not reach the server: other credentials, claims about the way of the
 * request, headers that replace the method or path that was judged, ranges, and tokens for this
 * service.
 */
const GUEST_ONLY = new Set([
  ...HOP_BY_HOP,
  ...['host', 'authorization', 'cookie', 'cookie2', 'expect', 'accept-encoding', 'forwarded'],
  ...['via', 'x-real-ip', 'x-client-ip', 'x-cluster-client-ip', 'true-client-ip', 'client-ip'],
  ...['cf-connecting-ip', 'x-http-method-override', 'x-http-method', 'x-method-override'],
  ...['x-original-url', 'x-rewrite-url', 'x-original-method', 'x-original-host', 'x-host'],
  // The credential cannot be found in an answer that begins or ends within it.
  ...['range', 'if-range'],
  ...['x-aws-ec2-metadata-token', 'x-aws-ec2-metadata-token-ttl-seconds', 'metadata-flavor'],
]);
const GUEST_ONLY_PREFIX = /^(?:x-forwarded-|x-gnt-|proxy-)/;

/**
 * Headers of the server that do not reach the guest: its session with the node, and orders to go
 * elsewhere. `location` is handled by itself.
 */
const SERVER_ONLY = new Set([
  ...HOP_BY_HOP,
  ...['set-cookie', 'set-cookie2', 'www-authenticate', 'authentication-info', 'alt-svc', 'refresh'],
  ...['strict-transport-security', 'public-key-pins', 'clear-site-data', 'location'],
]);
const SERVER_ONLY_PREFIX = /^(?:access-control-|proxy-|x-gnt-)/;

/**
 * Returns the guest's headers for the server. Framing, host and credential are not among them.
 * Pure.
 */
export function requestHeaders(given: HeaderList, auth: RelayAuth): string[] {
  const own = auth.kind === 'header' ? auth.name : 'authorization';
  return pick(
    given,
    (name) => name !== own && !GUEST_ONLY.has(name) && !GUEST_ONLY_PREFIX.test(name),
  );
}

/** Returns the server's headers for the guest, without framing and `location`. Pure. */
export function answerHeaders(given: HeaderList): string[] {
  return pick(given, (name) => !SERVER_ONLY.has(name) && !SERVER_ONLY_PREFIX.test(name));
}

function pick(given: HeaderList, isPassed: (name: string) => boolean): string[] {
  const named = nominated(given);
  const picked: string[] = [];
  for (const [name, value] of pairsOf(given)) {
    if (!PLAIN_NAME.test(name) || !PLAIN_VALUE.test(value)) continue;
    if (isPassed(name) && !named.has(name)) picked.push(name, value);
  }
  return picked;
}

/** Headers that `Connection` declares to be for this hop. */
function nominated(given: HeaderList): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [name, value] of pairsOf(given))
    if (name === 'connection')
      for (const one of value.split(',')) names.add(one.trim().toLowerCase());
  return names;
}

function* pairsOf(list: HeaderList): Generator<readonly [string, string]> {
  for (let at = 0; at + 1 < list.length; at += 2)
    yield [list[at]?.toLowerCase() ?? '', list[at + 1] ?? ''];
}
