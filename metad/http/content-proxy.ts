import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream';
import { messageOf } from '#shared/errors/app-error.ts';
import {
  FILE_ANSWER_HEADERS,
  FILE_REQUEST_HEADERS,
  pickHeaders,
} from '#shared/http/file-headers.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { requestOverSocket } from '#shared/socket/http-request.ts';
import { limitSilence } from '#shared/stream/limit-silence.ts';
import type { StreamName } from '../view/leaf.ts';
import type { Exchange } from './exchange.ts';
import { sendText } from './reply.ts';

/**
 * Serves what the node daemon has for an instance that is being installed: the image, the
 * personalization package, package mirrors.
 * @param path below the instance's, percent-encoded; the name if not given
 */
export type ServeStream = (exchange: Exchange, name: StreamName | 'mirror', path?: string) => void;

const PASSED_STATUSES = [200, 206, 304, 416];
/** Package managers ask for files that need not be there. */
const REFUSING_STATUSES = [400, 404];
/** Longest reason that is passed on from a failed request. */
const MAX_REASON_BYTES = 4096;
/** The node daemon sends something at least this often, or the transfer has failed. */
const IDLE_TIMEOUT_MS = 60_000;

/** @param socketPath the node daemon's content socket */
export function createContentProxy(socketPath: string): ServeStream {
  return (exchange, name, path = name) => {
    const { request, response, instance } = exchange;
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const asked = requestOverSocket({
      on: socketPath,
      path: `/v1/instances/${instance.view.uuid}/${path}`,
      method: request.method,
      headers: pickHeaders(request.headers, FILE_REQUEST_HEADERS),
      idleTimeoutMs: IDLE_TIMEOUT_MS,
      signal: gone.signal,
    });
    asked.then(
      (incoming) => pass(exchange, name, incoming),
      (error: unknown) => {
        if (gone.signal.aborted) return;
        sendText(response, 502, `cannot fetch the ${name} from the node: ${messageOf(error)}`);
      },
    );
  };
}

function pass(exchange: Exchange, name: StreamName | 'mirror', incoming: IncomingMessage): void {
  const { response, instance } = exchange;
  const status = incoming.statusCode ?? 502;
  if (!PASSED_STATUSES.includes(status)) {
    const isRefusal = name === 'mirror' && REFUSING_STATUSES.includes(status);
    void sendReason(exchange, name, incoming, isRefusal ? status : 502);
    return;
  }
  const headers = Object.entries(pickHeaders(incoming.headers, FILE_ANSWER_HEADERS)).flat();
  if (name !== 'mirror' && incoming.headers.etag === undefined && status !== 416) {
    headers.push('ETag', `"${instance.view.instanceId}-${name}"`);
  }
  if (name !== 'image' && name !== 'mirror') headers.push('Cache-Control', 'no-store');
  response.writeHead(status, headers);
  // From here on the silence of the body counts, not that of a guest that reads slowly.
  incoming.socket.setTimeout(0);
  // A transfer that ends early must not look complete: the response is destroyed with it.
  pipeline(limitSilence(incoming, IDLE_TIMEOUT_MS), response, () => undefined);
}

async function sendReason(
  exchange: Exchange,
  name: string,
  incoming: IncomingMessage,
  status: number,
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
  sendText(exchange.response, status, `the node could not provide the ${name}: ${text}`);
}

/** The node daemon's errors are JSON with a message, others plain text. */
function reasonText(body: string): string {
  const value = parseJson(body);
  if (typeof value === 'object' && value !== null && 'message' in value)
    return String(value.message);
  return body.trim() === '' ? 'no reason given' : body.trim();
}
