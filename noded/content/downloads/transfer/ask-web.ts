import { Agent as HttpAgent, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Duplex } from 'node:stream';
import { getCACertificates } from 'node:tls';
import got, { type Request } from 'got';
import { ForbiddenAddressError, type SsrfGuard } from './ssrf-guard.ts';
import { formatUrl } from './source-url.ts';

export interface WebRequest {
  readonly url: URL;
  readonly method: 'GET' | 'HEAD';
  /** For each hop: what one server may see is not for another. */
  readonly headersFor: (url: URL) => Readonly<Record<string, string>>;
  readonly guard: SsrfGuard;
  readonly maxRedirects: number;
  /** Judges the target of a redirection beyond what holds for all of them. */
  readonly mayFollow?: (target: URL) => boolean;
  readonly signal: AbortSignal;
  /** PEM certificates to trust besides the system's. */
  readonly certificateAuthority?: string | undefined;
}

/** The server's answer, whatever its status, with nothing of its body read. */
export interface WebAnswer {
  /** Where it came from, after the redirections. */
  readonly url: URL;
  readonly response: IncomingMessage;
  readonly body: Request;
}

/** What is not asked for, however often it is tried; the message says of what server, and why. */
export class WebRefusal extends Error {}

/** How long each part of a request may take, in milliseconds. */
const timeouts = {
  lookup: 15_000,
  connect: 30_000,
  secureConnect: 30_000,
  response: 60_000,
} as const;
/** For {@link limitSilence}: got's own limit would count a slow reader's silence as well. */
export const MAX_SILENCE_MS = 60_000;
const REDIRECTIONS = [301, 302, 303, 307, 308];

/**
 * Asks a web server, and those that it redirects to: the one place that decides where a download
 * may lead. Each hop is judged as the first one; none leads from https to http, to another
 * protocol, or nearer to this host than the first server is (`SsrfGuard`).
 * @throws WebRefusal, ForbiddenAddressError, or what the network says
 */
export async function askWeb(request: WebRequest): Promise<WebAnswer> {
  const { guard, maxRedirects, mayFollow } = request;
  let { url } = request;
  for (let hop = 0; hop <= maxRedirects; hop += 1) {
    if (url.protocol !== 'http:' && url.protocol !== 'https:')
      throw new WebRefusal(
        `${formatUrl(url)} is refused: redirects to ${url.protocol} are not followed`,
      );
    guard.checkLiteral(url);
    const { response, body } = await askOnce(url, request);
    const target = redirectionOf(url, response);
    if (target === undefined) return { url, response, body };
    body.destroy();
    if (target === null) throw new WebRefusal('the redirect has no target');
    if (url.protocol === 'https:' && target.protocol === 'http:')
      throw new WebRefusal(`it redirects from https to ${formatUrl(target)}`);
    if (mayFollow?.(target) === false) throw new WebRefusal('the redirect target is not allowed');
    url = target;
  }
  throw new WebRefusal(`it redirects more than ${maxRedirects} times`);
}

async function askOnce(
  url: URL,
  { method, headersFor, guard, signal, certificateAuthority }: WebRequest,
): Promise<Omit<WebAnswer, 'url'>> {
  const target = new URL(url);
  // Only the caller knows a login; one that a redirection names is the server's, not ours.
  target.username = '';
  target.password = '';
  const body = got.stream(target, {
    method,
    headers: { 'user-agent': 'gnt-noded', 'accept-encoding': 'identity', ...headersFor(url) },
    signal,
    decompress: false,
    followRedirect: false,
    throwHttpErrors: false,
    retry: { limit: 0 },
    timeout: timeouts,
    dnsLookup: guard.lookup,
    // A connection that another request left open was judged by that request's guard.
    agent: { http: new HttpAgent(), https: new HttpsAgent() },
    ...(url.protocol === 'https:' && {
      https: { certificateAuthority: trusted(certificateAuthority) },
    }),
  });
  // Whoever reads the body hears of its error; before that, it must not end the program.
  body.on('error', () => undefined);
  // Nobody asked for another protocol, and what got takes for the end of the request is the end of
  // its time limits too.
  body.once('upgrade', (_, socket: Duplex) => {
    socket.destroy();
    body.destroy(new Error('the server answered 101 (switching protocols)'));
  });
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    body.once('response', (answer: IncomingMessage) => {
      // By its end the answer of a small file has let go of its socket.
      guard.answered(answer.socket.remoteAddress ?? body.ip);
      resolve(answer);
    });
    body.once('error', (error) => reject(unwrapped(error, signal)));
  });
  return { response, body };
}

/** got wraps what the look-up said, and what the signal was aborted for. */
function unwrapped(error: Error, signal: AbortSignal): Error {
  if (signal.aborted && signal.reason instanceof Error) return signal.reason;
  return error.cause instanceof ForbiddenAddressError ? error.cause : error;
}

/** Undefined: it is none; null: it leads nowhere. */
function redirectionOf(url: URL, response: IncomingMessage): URL | null | undefined {
  const { location } = response.headers;
  if (!REDIRECTIONS.includes(response.statusCode ?? 0)) return undefined;
  return location === undefined ? null : URL.parse(location, url);
}

/** Certificates that a web server is judged by: Node's, the system's, and one more. */
function trusted(extra?: string): string[] {
  const known = [...getCACertificates('bundled'), ...getCACertificates('system')];
  return extra === undefined ? known : [...known, extra];
}
