import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { messageOf } from '#shared/errors/app-error.ts';
import type { StreamName } from '../dialects/leaf.ts';
import type { Exchange } from './exchange.ts';
import { sendText } from './reply.ts';

/** Serves the node daemon's big files: the image and the personalization package of an instance that is being installed. */
export type ServeStream = (exchange: Exchange, name: StreamName) => void;

/** Headers that pass from the node daemon to the appliance. */
const PASSED_HEADERS = [
  'content-length',
  'content-range',
  'content-type',
  'accept-ranges',
  'etag',
  'last-modified',
] as const;
const PASSED_REQUEST_HEADERS = ['range', 'if-range', 'if-none-match'] as const;
/** Longest reason that is passed on from a failed request. */
const MAX_REASON_BYTES = 4096;
/** The node daemon sends something at least this often, or the transfer has failed. */
const IDLE_TIMEOUT_MS = 60_000;

/** @param socketPath the node daemon's content socket */
export function createContentProxy(socketPath: string): ServeStream {
  return (exchange, name) => {
    const { request, response, instance } = exchange;
    const path = `/v1/instances/${instance.view.uuid}/${name}`;
    const headers: Record<string, string> = {};
    for (const header of PASSED_REQUEST_HEADERS) {
      const value = request.headers[header];
      if (typeof value === 'string') headers[header] = value;
    }
    const upstream = httpRequest({
      socketPath,
      path,
      method: request.method ?? 'GET',
      headers,
      agent: false,
      timeout: IDLE_TIMEOUT_MS,
    });
    upstream.on('timeout', () => upstream.destroy(new Error('the node daemon stopped sending')));
    upstream.on('error', (error) => {
      if (response.headersSent) response.destroy();
      else sendText(response, 502, `cannot fetch the ${name} from the node: ${messageOf(error)}`);
    });
    upstream.on('response', (incoming) => pass(exchange, name, incoming));
    response.on('close', () => upstream.destroy());
    upstream.end();
  };
}

function pass(exchange: Exchange, name: StreamName, incoming: IncomingMessage): void {
  const { response, instance } = exchange;
  const status = incoming.statusCode ?? 502;
  if (![200, 206, 304, 416].includes(status)) {
    void sendReason(exchange, name, incoming);
    return;
  }
  const headers: string[] = [];
  for (const header of PASSED_HEADERS) {
    const value = incoming.headers[header];
    if (typeof value === 'string') headers.push(header, value);
  }
  if (incoming.headers.etag === undefined && status !== 416) {
    headers.push('ETag', `"${instance.view.instanceId}-${name}"`);
  }
  if (name !== 'image') headers.push('Cache-Control', 'no-store');
  response.writeHead(status, headers);
  incoming.on('error', () => response.destroy());
  // A transfer that ends early must not look complete.
  incoming.on('aborted', () => response.destroy());
  incoming.pipe(response);
}

async function sendReason(
  exchange: Exchange,
  name: string,
  incoming: IncomingMessage,
): Promise<void> {
  let reason = '';
  try {
    for await (const chunk of incoming) {
      reason += String(chunk);
      if (reason.length > MAX_REASON_BYTES) break;
    }
  } catch {
    // The reason is cut off; what there is of it is passed on.
  }
  const text = reasonText(reason.slice(0, MAX_REASON_BYTES));
  sendText(exchange.response, 502, `the node could not provide the ${name}: ${text}`);
}

/** The node daemon's errors are JSON with a message, others plain text. */
function reasonText(body: string): string {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === 'object' && value !== null && 'message' in value) {
      return String(value.message);
    }
  } catch {
    // Not JSON: the text itself is the reason.
  }
  return body.trim() === '' ? 'no reason given' : body.trim();
}
