import { MAX_RELAYS, type RelaySettings } from '#shared/contract/relay.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { depthOfHost, refusalOf } from '../content/downloads/transfer/ssrf-guard.ts';
import { relayTarget } from '../net/relay/relay-target.ts';

/** Headers that have a meaning of their own for each request. */
const TAKEN = [
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'accept-encoding',
  'te',
];

/** @throws AppError VALIDATION naming the relay */
export function refuseUnusableRelays(relays: Readonly<Record<string, RelaySettings>>): void {
  const names = Object.keys(relays);
  if (names.length > MAX_RELAYS)
    throw new AppError('VALIDATION', `more than ${MAX_RELAYS} relays`, {
      hint: 'Remove relays that are not needed: gnt-cluster modify --relay NAME=none',
    });
  for (const [name, relay] of Object.entries(relays)) {
    const reason = reasonAgainst(relay);
    if (reason !== undefined)
      throw new AppError('VALIDATION', `--relay ${name}: ${reason}`, { details: { name } });
  }
}

function reasonAgainst(relay: RelaySettings): string | undefined {
  const url = new URL(relay.url);
  const forbidden = refusalOf(url);
  if (forbidden !== undefined) return forbidden;
  if (url.protocol === 'http:' && depthOfHost(url) === 'public')
    return 'http would send the secret in clear text: use https, or the address of a private network';
  if (relay.auth.kind === 'header' && TAKEN.includes(relay.auth.name))
    return `the header ${relay.auth.name} cannot carry a secret`;
  if ('refusal' in relayTarget({ url: relay.url, auth: relay.auth, paths: undefined }, ''))
    return 'the path of the URL cannot be sent unchanged';
  const wrong = relay.paths?.find(
    (path) => 'refusal' in relayTarget({ ...relay, paths: undefined }, path.slice(1)),
  );
  return wrong === undefined ? undefined : `the path ${wrong} cannot be sent unchanged`;
}
