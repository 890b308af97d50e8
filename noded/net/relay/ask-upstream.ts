import {
  Agent as HttpAgent,
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as requestHttp,
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { Readable } from 'node:stream';
import { createSecureContext } from 'node:tls';
import { sendStream } from '#shared/socket/http-request.ts';
import { trusted } from '../../content/downloads/transfer/ask-web.ts';
import { SsrfGuard } from '../../content/downloads/transfer/ssrf-guard.ts';
import type { HeaderList } from './relay-headers.ts';

/** Time to look a name up and to connect, with TLS. */
const CONNECT_TIMEOUT_MS = 30_000;
/**
 * Longest silence of the connection. Language models may think for minutes before the first byte,
 * and their own clients wait ten.
 */
export const MAX_RELAY_SILENCE_MS = 600_000;

/** The connections to one server. */
export interface Upstream {
  readonly guard: SsrfGuard;
  readonly agent: HttpAgent;
}

/**
 * Connections are not kept: a server may close one just when a body that cannot be repeated is
 * sent. TLS sessions are.
 * @param certificateAuthority PEM certificates to trust besides the system's
 */
export function createUpstream(url: URL, certificateAuthority: string | undefined): Upstream {
  const guard = new SsrfGuard(url, []);
  if (url.protocol === 'http:') return { guard, agent: new HttpAgent() };
  // Made once: parsing all authorities takes milliseconds.
  const secureContext = createSecureContext({ ca: trusted(certificateAuthority) });
  return { guard, agent: new HttpsAgent({ secureContext }) };
}

export interface UpstreamRequest {
  readonly method: string;
  readonly url: URL;
  /** Without its question mark. */
  readonly query: string | null;
  readonly headers: HeaderList;
  readonly body: RequestBody | null;
  readonly signal: AbortSignal;
}

export interface RequestBody {
  readonly stream: Readable;
  /** Undefined for a body in chunks. */
  readonly length: number | undefined;
  readonly maxBytes: number;
  /** Called with the size of each part. */
  readonly onBytes: (count: number) => void;
}

export class BodyTooLarge extends Error {}

/**
 * Sends a request and returns the head of the answer, of any status.
 * @throws BodyTooLarge, ForbiddenAddressError, the signal's reason, or a network error
 */
export async function askUpstream(
  { guard, agent }: Upstream,
  { method, url, query, headers, body, signal }: UpstreamRequest,
): Promise<IncomingMessage> {
  guard.checkLiteral(url);
  const send = url.protocol === 'https:' ? requestHttps : requestHttp;
  const outgoing = send({
    ...{ agent, method, signal, lookup: guard.lookup, timeout: MAX_RELAY_SILENCE_MS },
    ...{ host: url.hostname.replaceAll(/[[\]]/g, ''), port: url.port || undefined },
    path: `${url.pathname}${query === null ? '' : `?${query}`}`,
    headers: { ...collect(headers), host: url.host, ...framing(method, body) },
  });
  // After the head, the reader of the body gets the error.
  outgoing.on('error', () => undefined);
  outgoing.on('timeout', () => outgoing.destroy(new Error('the server sends nothing')));
  outgoing.on('upgrade', (_answer, socket) => {
    socket.destroy();
    outgoing.destroy(new Error('the server switched protocols'));
  });
  limitConnecting(outgoing, url);
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.on('response', resolve);
    // Some ends have no error of their own.
    outgoing.on('close', () => reject(new Error('the server closed the connection')));
    outgoing.on('error', (error) =>
      reject(signal.aborted && signal.reason instanceof Error ? signal.reason : error),
    );
  });
  if (body === null) outgoing.end();
  else pass(body, outgoing);
  return answer;
}

/** Sends the body at the pace of the server. The stream stays usable when the server fails. */
function pass({ stream, maxBytes, onBytes }: RequestBody, outgoing: ClientRequest): void {
  let sent = 0;
  stream.on('data', (chunk: Buffer) => {
    sent += chunk.length;
    onBytes(chunk.length);
    if (sent <= maxBytes) return;
    stream.unpipe(outgoing);
    outgoing.destroy(new BodyTooLarge('the body is too large'));
  });
  sendStream(stream, outgoing);
}

function limitConnecting(outgoing: ClientRequest, { protocol }: URL): void {
  const timer = setTimeout(
    () => outgoing.destroy(new Error('the server does not accept the connection')),
    CONNECT_TIMEOUT_MS,
  );
  const stop = (): void => clearTimeout(timer);
  outgoing.on('close', stop);
  outgoing.on('socket', (socket) =>
    socket.once(protocol === 'https:' ? 'secureConnect' : 'connect', stop),
  );
}

/** Frames the body again, whatever the guest wrote about it. */
function framing(method: string, body: RequestBody | null): OutgoingHttpHeaders {
  if (body?.length !== undefined) return { 'content-length': body.length };
  if (body) return { 'transfer-encoding': 'chunked' };
  return ['POST', 'PUT', 'PATCH'].includes(method) ? { 'content-length': 0 } : {};
}

function collect(headers: HeaderList): OutgoingHttpHeaders {
  const lines = new Map<string, string[]>();
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? '';
    lines.set(name, [...(lines.get(name) ?? []), headers[at + 1] ?? '']);
  }
  // A list of one value may be a header that servers accept once.
  const whole = [...lines].map(([name, values]) => [name, values.length > 1 ? values : values[0]]);
  // Each value is a string or a list of strings.
  return Object.fromEntries(whole) as OutgoingHttpHeaders;
}
