import { InstanceSlots } from '#shared/bounds/instance-slots.ts';
import {
  parseTokenRequest,
  TOKENS_UNAVAILABLE,
  type TokenRequest,
} from '#shared/contract/identity.ts';
import { MAX_TOKEN_REQUESTS } from '#shared/contract/metad-control.ts';
import { isAppError, messageOf } from '#shared/errors/app-error.ts';
import { RETRY_AFTER_S } from '../config/limits.ts';
import type { Address } from '../dialects/address.ts';
import { askNodeForIdentity } from './ask-node.ts';
import type { Audit } from './audit.ts';
import type { Exchange } from './exchange.ts';
import { FLAVOR_HEADER } from '../dialects/metadata-flavor.ts';
import { sendText } from './reply.ts';

/** Serves identity tokens, which the node daemon signs. */
export type ServeIdentity = (exchange: Exchange, address: Address) => Promise<void>;

/** The node daemon reads the store, which may be slow. */
const ANSWER_TIMEOUT_MS = 10_000;
const REFUSALS = [400, 403, 503];

/** @param socketPath of the node daemon's content socket */
export function createServeIdentity(socketPath: string, audit: Audit): ServeIdentity {
  const slots = new InstanceSlots(MAX_TOKEN_REQUESTS);
  return async (exchange, address) => {
    const { instance, response } = exchange;
    const form = address.kind === 'identity' ? address.form : 'ganeti';
    const headers = form === 'google' ? FLAVOR_HEADER : [];
    const asked = readRequest(exchange.query, form);
    if ('problem' in asked) return sendText(response, 400, asked.problem, headers);
    const query = canonicalQuery(asked);
    const { identityTokens: cache } = instance;
    const kept = cache.find(query);
    if (kept !== undefined) return sendToken(exchange, kept, headers);
    const delayMs = cache.takeIssue();
    if (delayMs > 0)
      return sendText(response, 429, 'too many new tokens: use the last one until it expires', [
        ...headers,
        ...['Retry-After', String(Math.ceil(delayMs / 1000))],
      ]);
    const giveBack = slots.take(instance.view.uuid);
    if (!giveBack) return refuse(exchange, 503, 'too many concurrent requests for tokens');
    const keep = cache.expect(query, asked.ttl);
    try {
      const { uuid } = instance.view;
      const path = `token?${query}`;
      const { status, text } = await askNodeForIdentity(socketPath, uuid, path, ANSWER_TIMEOUT_MS);
      if (status !== 200) return refuse(exchange, REFUSALS.includes(status) ? status : 502, text);
      keep(text);
      return sendToken(exchange, text, headers);
    } catch (error) {
      audit.failed(instance, 'warn', 'identity.not-issued', { error: messageOf(error) });
      return refuse(exchange, 503, TOKENS_UNAVAILABLE);
    } finally {
      giveBack();
    }
  };
}

/** Translates the forms of clouds. Google's tokens are RS256. */
function readRequest(
  given: URLSearchParams | null,
  form: 'ganeti' | 'google' | 'aud',
): TokenRequest | { readonly problem: string } {
  const query = new URLSearchParams(given ?? '');
  if (form === 'google') query.set('alg', 'RS256');
  if (form === 'aud') for (const value of query.getAll('aud')) query.append('audience', value);
  try {
    return parseTokenRequest(query);
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { problem: error.message };
  }
}

/** Returns the same text for equal requests. */
function canonicalQuery({ audience, ttl, alg, format }: TokenRequest): string {
  return String(new URLSearchParams({ audience, ttl: String(ttl), alg, format }));
}

function sendToken({ request, response }: Exchange, token: string, more: readonly string[]): void {
  response.writeHead(200, [
    ...['Content-Type', 'text/plain', 'Content-Length', String(token.length)],
    ...['Cache-Control', 'no-store', ...more],
  ]);
  response.end(request.method === 'HEAD' ? undefined : token);
}

function refuse({ response }: Exchange, status: number, reason: string): void {
  sendText(response, status, reason, status === 503 ? ['Retry-After', String(RETRY_AFTER_S)] : []);
}
