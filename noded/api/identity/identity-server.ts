import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { InstanceSlots } from '#shared/bounds/instance-slots.ts';
import { tellableMessage } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { Logger } from '#shared/log/log.ts';
import { networkOf } from '#shared/socket/network-of.ts';
import { typeOfPublished } from '../../instances/identity/published.ts';
import { ensureCertificate } from '../rapi/certificate.ts';
import { listen, type Listening } from '../rapi/listen.ts';
import type { IdentityListenSettings } from './identity-settings.ts';

/** Verifiers need no login, so their connections and time are bounded. */
const MAX_CONNECTIONS = 256;
/** Of an IPv4 address or an IPv6 /64. A proxy in front of the node needs no more. */
const MAX_NETWORK_CONNECTIONS = 16;
const REQUEST_TIMEOUT_MS = 10_000;
/** Node's default of 30 seconds would prolong the timeouts. */
const CHECK_TIMEOUTS_MS = 1000;
/** Time for which a request of any stranger is answered without reading the store. */
const KEPT_MS = 1000;
/** Seconds that verifiers keep a document; much shorter than the overlap of keys. */
const MAX_AGE_S = 300;

/** Returns the public documents by path. */
export type LoadPublished = () => Promise<Readonly<Record<string, string>>>;

/**
 * Serves OpenID discovery and the public identity keys to every client.
 * @throws AppError FILE_UNREADABLE for the certificate, CONFLICT if it cannot listen on the address
 */
export async function startIdentityServer(
  settings: IdentityListenSettings,
  {
    load,
    nodeName,
    logger,
  }: { readonly load: LoadPublished; readonly nodeName: string; readonly logger: Logger },
): Promise<Listening> {
  const pem = await ensureCertificate(
    { file: settings.certificateFile, option: '--identity-certificate' },
    nodeName,
    logger,
  );
  const loadKept = keepFor(KEPT_MS, load);
  const server = createServer(
    {
      ...{ key: pem, cert: pem, minVersion: 'TLSv1.2', handshakeTimeout: REQUEST_TIMEOUT_MS },
      ...{ headersTimeout: REQUEST_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS },
      connectionsCheckingInterval: CHECK_TIMEOUTS_MS,
    },
    (request, response) => void answer(request, response, loadKept, logger),
  );
  server.maxConnections = MAX_CONNECTIONS;
  const slots = new InstanceSlots(MAX_NETWORK_CONNECTIONS);
  server.on('connection', (socket) => {
    const giveBack = slots.take(networkOf(socket.remoteAddress ?? ''));
    if (giveBack === undefined) socket.destroy();
    else socket.once('close', giveBack);
  });
  const listening = await listen(server, '--identity-listen', settings);
  logger.info('identity.ready', { host: settings.host, port: listening.port });
  return listening;
}

/** Shares one load among all callers within a time. A failed load is not kept. */
function keepFor(keptMs: number, load: LoadPublished): LoadPublished {
  let kept: { readonly loading: ReturnType<LoadPublished>; readonly atMs: number } | undefined;
  return () => {
    const nowMs = performance.now();
    if (kept === undefined || nowMs - kept.atMs > keptMs) {
      const loading = load();
      kept = { loading, atMs: nowMs };
      loading.catch(() => (kept = undefined));
    }
    return kept.loading;
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  load: LoadPublished,
  logger: Logger,
): Promise<void> {
  const [path = ''] = (request.url ?? '').slice(1).split('?', 1);
  try {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return send(response, 405, 'only GET and HEAD\n', { allow: 'GET, HEAD' });
    const document = ownValue(await load(), path);
    if (document === undefined) return send(response, 404, 'not found\n');
    send(response, 200, request.method === 'HEAD' ? '' : document, {
      'content-type': typeOfPublished(path),
      'cache-control': `public, max-age=${MAX_AGE_S}`,
      'content-length': String(Buffer.byteLength(document)),
    });
  } catch (error) {
    logger.warn('identity.not-published', { reason: tellableMessage(error) });
    send(response, 503, 'the keys cannot be read now\n', { 'retry-after': '5' });
  }
}

function send(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers });
  response.end(body);
}
