import { Agent as HttpAgent, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Duplex } from 'node:stream';
import { getCACertificates } from 'node:tls';
import got, { type Request } from 'got';
import { ForbiddenAddressError, type SsrfGuard } from './ssrf-guard.ts';
import { formatUrl } from './source-url.ts';

export interface WebRequest {
  readonly url: URL;
  readonly method: 'GET' | 'HEAD' | 'POST';
  /** Of a POST, which must not follow redirections: they would carry it elsewhere. */
  readonly body?: string;
  /** Returns the headers of each hop: a login is for one server only. */
  readonly headersFor: (url: URL) => Readonly<Record<string, string>>;
  readonly guard: SsrfGuard;
  readonly maxRedirects: number;
  readonly mayFollow?: (target: URL) => boolean;
  readonly signal: AbortSignal;
  /** PEM certificates to trust besides the system's. */
  readonly certificateAuthority?: string | undefined;
}

/** The server's answer of any status, with an unread body. */
export interface WebAnswer {
  readonly url: URL;
  readonly response: IncomingMessage;
  readonly body: Request;
}

/**
 * A final refusal: repeating the request does not help. The message names the server and the
 * reason.
 */
export class WebRefusal extends Error {}

/** Time limits of the parts of a request, in milliseconds. */
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
 * Sends a request and follows redirections. This is the one place that decides where a download may
 * lead. Each hop is checked like the first. No hop leads from https to http, to another protocol,
 * or nearer to this host than the first server is (`SsrfGuard`).
 * @throws WebRefusal, ForbiddenAddressError, or a network error
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
  { method, body: content, headersFor, guard, signal, certificateAuthority }: WebRequest,
): Promise<Omit<WebAnswer, 'url'>> {
  const target = new URL(url);
  // Only the caller's login counts. A login in a redirection comes from the server.
  target.username = '';
  target.password = '';
  const body = got.stream(target, {
    method,
    ...(content !== undefined && { body: content }),
    headers: { 'user-agent': 'gnt-noded', 'accept-encoding': 'identity', ...headersFor(url) },
    signal,
    decompress: false,
    followRedirect: false,
    throwHttpErrors: false,
    retry: { limit: 0 },
    timeout: timeouts,
    dnsLookup: guard.lookup,
    // A kept-alive connection was checked by another request's guard.
    agent: { http: new HttpAgent(), https: new HttpsAgent() },
    ...(url.protocol === 'https:' && {
      https: { certificateAuthority: trusted(certificateAuthority) },
    }),
  });
  // The body's reader receives its error. Before that, the error must not end the program.
  body.on('error', () => undefined);
  // got treats the upgrade as the end of the request, which also ends its time limits.
  body.once('upgrade', (_, socket: Duplex) => {
    socket.destroy();
    body.destroy(new Error('the server answered 101 (switching protocols)'));
  });
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    body.once('response', (answer: IncomingMessage) => {
      // Read now: a small answer has released its socket by its end.
      guard.answered(answer.socket.remoteAddress ?? body.ip);
      resolve(answer);
    });
    body.once('error', (error) => reject(unwrapped(error, signal)));
  });
  return { response, body };
}

/** Returns the error inside got's wrapper: that of the look-up, or the signal's reason. */
function unwrapped(error: Error, signal: AbortSignal): Error {
  if (signal.aborted && signal.reason instanceof Error) return signal.reason;
  return error.cause instanceof ForbiddenAddressError ? error.cause : error;
}

/** Returns undefined for no redirection, and null for one without a target. */
function redirectionOf(url: URL, response: IncomingMessage): URL | null | undefined {
  const { location } = response.headers;
  if (!REDIRECTIONS.includes(response.statusCode ?? 0)) return undefined;
  return location === undefined ? null : URL.parse(location, url);
}

export function trusted(extra?: string): string[] {
  const known = [...getCACertificates('bundled'), ...getCACertificates('system')];
  return extra === undefined ? known : [...known, extra];
}
