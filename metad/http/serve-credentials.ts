import { InstanceSlots } from '#shared/bounds/instance-slots.ts';
import type { Clock } from '#shared/clock/clock.ts';
import { type Cloud, describeAwsFailure } from '#shared/contract/cloud-credentials.ts';
import { TOKENS_UNAVAILABLE } from '#shared/contract/identity.ts';
import { MAX_CREDENTIAL_REQUESTS } from '#shared/contract/metad-control.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import { RETRY_AFTER_S } from '../config/limits.ts';
import { askNodeForIdentity } from './ask-node.ts';
import type { Audit } from './audit.ts';
import type { Exchange } from './exchange.ts';
import { FLAVOR_HEADER } from '../dialects/metadata-flavor.ts';
import { sendText } from './reply.ts';

/** Serves temporary credentials of a cloud, which the node daemon gets. */
export type ServeCredentials = (exchange: Exchange, cloud: Cloud) => Promise<void>;

/** Longer than the limit of the node daemon for two requests to a cloud. */
const ANSWER_TIMEOUT_MS = 25_000;
const TOO_MANY = 'too many requests for credentials: use the last ones until they expire';

export interface ServeCredentialsOptions {
  /** Of the node daemon's content socket. */
  readonly socketPath: string;
  readonly audit: Audit;
  readonly clock: Clock;
}

/** Keeps no credentials: the node daemon has them in its memory. */
export function createServeCredentials(options: ServeCredentialsOptions): ServeCredentials {
  const { socketPath, audit, clock } = options;
  const slots = new InstanceSlots(MAX_CREDENTIAL_REQUESTS);
  return async (exchange, cloud) => {
    const { instance } = exchange;
    const { uuid } = instance.view;
    const delayMs = instance.identityTokens.takeCredentials();
    const giveBack = delayMs > 0 ? undefined : slots.take(uuid);
    if (!giveBack) return refuseForRate(exchange, cloud, delayMs);
    try {
      const path = `credentials/${cloud}`;
      const { status, text } = await askNodeForIdentity(socketPath, uuid, path, ANSWER_TIMEOUT_MS);
      if (status === 200) return send(exchange, cloud, text);
      // The view is about to follow. systemd's client expects no text in the EC2 tree.
      if (status === 403 || status === 404)
        return refuse(exchange, cloud, status, cloud === 'aws' ? '' : text);
      return fail(exchange, cloud, clock.now());
    } catch (error) {
      audit.failed(instance, 'warn', 'identity.no-credentials', { cloud, error: messageOf(error) });
      return fail(exchange, cloud, clock.now());
    } finally {
      giveBack();
    }
  };
}

/**
 * Answers that no credentials are available now. The EC2 tree answers 200, as IMDS does: clients
 * that crawl the whole tree, such as ohai, fail on another status.
 */
function fail(exchange: Exchange, cloud: Cloud, nowMs: number): void {
  if (cloud === 'aws')
    return send(exchange, cloud, describeAwsFailure('Failed', TOKENS_UNAVAILABLE, nowMs));
  return refuse(exchange, cloud, 503, TOKENS_UNAVAILABLE, RETRY_AFTER_S);
}

function refuseForRate(exchange: Exchange, cloud: Cloud, delayMs: number): void {
  const delayS = Math.max(RETRY_AFTER_S, Math.ceil(delayMs / 1000));
  refuse(exchange, cloud, 429, TOO_MANY, delayS);
}

function refuse(
  { response }: Exchange,
  cloud: Cloud,
  status: number,
  reason: string,
  retryAfterS?: number,
): void {
  sendText(response, status, reason, [
    ...(cloud === 'google' ? FLAVOR_HEADER : []),
    ...(retryAfterS === undefined ? [] : ['Retry-After', String(retryAfterS)]),
  ]);
}

function send({ request, response }: Exchange, cloud: Cloud, text: string): void {
  response.writeHead(200, [
    // IMDS calls its JSON text.
    ...['Content-Type', cloud === 'aws' ? 'text/plain' : 'application/json'],
    ...['Content-Length', String(Buffer.byteLength(text)), 'Cache-Control', 'no-store'],
    ...(cloud === 'google' ? FLAVOR_HEADER : []),
  ]);
  response.end(request.method === 'HEAD' ? undefined : text);
}
