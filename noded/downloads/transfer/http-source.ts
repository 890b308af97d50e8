import type { IncomingMessage } from 'node:http';
import { getCACertificates } from 'node:tls';
import got, { type Request } from 'got';
import { AppError, type JsonValue } from '#shared/errors/app-error.ts';
import { reveal, Secret } from '#shared/secret/secret.ts';
import { ForbiddenAddressError, refusalOf, safeLookup } from './address-policy.ts';
import type { ByteSource, Opened, OpenRequest } from './byte-source.ts';
import { findLogin, type Login } from './netrc.ts';
import { formatUrl } from './source-url.ts';

export interface HttpSourceOptions {
  readonly url: URL;
  /** For the host of `url` only. */
  readonly login?: Login;
  /** Text of a netrc file. */
  readonly netrc: string;
  /** PEM certificates to trust besides the system's. */
  readonly certificateAuthority?: string;
}

const MAX_REDIRECTS = 10;
const timeouts = {
  lookup: 15_000,
  connect: 30_000,
  secureConnect: 30_000,
  response: 60_000,
  /** Without a byte. */
  socket: 60_000,
} as const;

/** A file on a web server. Each hop of a redirection is judged like the first one. */
export function createHttpSource(options: HttpSourceOptions): ByteSource {
  const display = formatUrl(options.url);
  return {
    display,
    async open(request) {
      let url = options.url;
      for (let hop = 0; hop <= MAX_REDIRECTS; hop += 1) {
        checkTarget(url, display);
        const { stream, response } = await ask(url, options, request);
        const target = redirectionOf(url, response);
        if (!target && response.statusCode === 416 && request.offset > 0) {
          // The file became shorter than what we have: it is another one.
          stream.destroy();
          return this.open({ ...request, offset: 0, validators: null });
        }
        if (!target) return interpret(stream, response, request, url);
        stream.destroy();
        if (url.protocol === 'https:' && target.protocol === 'http:') {
          throw failure(display, `it redirects from https to ${formatUrl(target)}`);
        }
        url = target;
      }
      throw failure(display, `it redirects more than ${MAX_REDIRECTS} times`);
    },
  };
}

function checkTarget(url: URL, display: string): void {
  const isHttp = url.protocol === 'http:' || url.protocol === 'https:';
  const refusal = isHttp ? refusalOf(url) : `${url.protocol} is not followed`;
  if (refusal) throw failure(display, `${formatUrl(url)} is refused: ${refusal}`);
}

async function ask(
  url: URL,
  options: HttpSourceOptions,
  { offset, validators, signal }: OpenRequest,
): Promise<{ stream: Request; response: IncomingMessage }> {
  const target = new URL(url);
  target.username = '';
  target.password = '';
  const stream = got.stream(target, {
    headers: {
      'user-agent': 'gnt-noded',
      'accept-encoding': 'identity',
      ...authorization(url, options),
      ...(offset > 0 && { range: `bytes=${offset}-` }),
      ...(validators && conditions(offset, validators.etag, validators.lastModified)),
    },
    signal,
    decompress: false,
    followRedirect: false,
    throwHttpErrors: false,
    retry: { limit: 0 },
    timeout: timeouts,
    // got's type knows one signature of dns.lookup only.
    dnsLookup: safeLookup,
    ...(url.protocol === 'https:' && {
      https: { certificateAuthority: trusted(options.certificateAuthority) },
    }),
  });
  // Whoever reads the body hears of its error; before that, it must not end the program.
  stream.on('error', () => undefined);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    stream.once('response', (answer: IncomingMessage) => resolve(answer));
    stream.once('error', (error) => reject(classify(error, url, signal)));
  });
  return { stream, response };
}

/** Certificates that a web server is judged by: Node's, the system's, and one more. */
export function trusted(extra?: string): string[] {
  const known = [...getCACertificates('bundled'), ...getCACertificates('system')];
  return extra === undefined ? known : [...known, extra];
}

function conditions(
  offset: number,
  etag: string | null,
  lastModified: string | null,
): Record<string, string> {
  if (offset > 0) {
    const version = etag ?? lastModified;
    return version === null ? {} : { 'if-range': version };
  }
  return {
    ...(etag !== null && { 'if-none-match': etag }),
    ...(lastModified !== null && { 'if-modified-since': lastModified }),
  };
}

/** Credentials go to the host that they were given for, never along a redirection. */
function authorization(url: URL, options: HttpSourceOptions): Record<string, string> {
  const login = findLoginFor(url, options);
  if (!login) return {};
  const pair = Buffer.from(`${login.user}:${reveal(login.password)}`);
  return { authorization: `Basic ${pair.toString('base64')}` };
}

function findLoginFor(
  url: URL,
  { url: first, login, netrc }: HttpSourceOptions,
): Login | undefined {
  if (login && url.origin === first.origin) return login;
  if (url.username !== '') {
    const password = new Secret(decodeURIComponent(url.password));
    return { user: decodeURIComponent(url.username), password };
  }
  return findLogin(netrc, url.hostname);
}

function redirectionOf(url: URL, response: IncomingMessage): URL | undefined {
  const { location } = response.headers;
  const isRedirection = [301, 302, 303, 307, 308].includes(response.statusCode ?? 0);
  if (!isRedirection) return undefined;
  const target = location === undefined ? null : URL.parse(location, url);
  if (!target) throw failure(formatUrl(url), 'it redirects to nowhere');
  return target;
}

function interpret(
  stream: Request,
  response: IncomingMessage,
  request: OpenRequest,
  url: URL,
): Opened {
  const status = response.statusCode ?? 0;
  if (status === 304 && request.offset === 0 && request.validators) {
    stream.destroy();
    return { kind: 'not-modified' };
  }
  const extent = extentOf(status, response, request.offset);
  if (!extent) {
    stream.destroy();
    throw statusFailure(status, response.statusMessage ?? '', url);
  }
  const { headers } = response;
  checkContentType(headers['content-type'], stream, url);
  return {
    kind: 'body',
    ...extent,
    validators: { etag: headers.etag ?? null, lastModified: headers['last-modified'] ?? null },
    body: readBody(stream, url, request.signal),
  };
}

/** Which bytes the body holds; undefined when it is not the file. */
function extentOf(
  status: number,
  { headers }: IncomingMessage,
  wanted: number,
): { offset: number; totalBytes: number | null } | undefined {
  if (status === 200) {
    const length = headers['content-length'];
    return { offset: 0, totalBytes: length === undefined ? null : Number(length) };
  }
  const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers['content-range'] ?? '');
  if (status !== 206 || wanted === 0 || Number(range?.[1]) !== wanted) return undefined;
  return { offset: wanted, totalBytes: range?.[2] === '*' ? null : Number(range?.[2]) };
}

/** A login page or a mirror's apology comes with status 200 too. */
function checkContentType(type: string | undefined, stream: Request, url: URL): void {
  if (!/^(text\/html|application\/xhtml)/i.test(type ?? '')) return;
  stream.destroy();
  throw failure(formatUrl(url), 'the server answered with a web page', {
    contentType: type ?? null,
  });
}

function statusFailure(status: number, text: string, url: URL): Error {
  const message = `status ${status}${text && ` ${text}`}`;
  const mayPass = status >= 500 || [206, 408, 425, 429].includes(status);
  if (mayPass) return new Error(message);
  const hint =
    status === 401 || status === 403
      ? 'give user and password (netrc file, or --personalization-user for a package)'
      : 'check the URL';
  return failure(formatUrl(url), `the server answered ${message}`, { status }, hint);
}

async function* readBody(
  stream: Request,
  url: URL,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void> {
  try {
    // Without an encoding the chunks are Buffers.
    for await (const chunk of stream as AsyncIterable<Buffer>) yield chunk;
  } catch (error) {
    throw classify(error, url, signal);
  } finally {
    stream.destroy();
  }
}

/** What another attempt cannot mend becomes an AppError. */
function classify(error: unknown, url: URL, signal: AbortSignal): Error {
  if (signal.aborted && signal.reason instanceof Error) return signal.reason;
  const whole = error instanceof Error ? error : new Error(String(error));
  const cause = whole.cause instanceof Error ? whole.cause : whole;
  if (cause instanceof ForbiddenAddressError) return failure(formatUrl(url), cause.message);
  const code = 'code' in whole && typeof whole.code === 'string' ? whole.code : '';
  const isCertificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/.test(code);
  if (isCertificate || code === 'ENOTFOUND') return failure(formatUrl(url), whole.message);
  return whole;
}

function failure(
  display: string,
  reason: string,
  details: Record<string, JsonValue> = {},
  hint = 'check the URL',
): AppError {
  return new AppError('DOWNLOAD_FAILED', `cannot download ${display}: ${reason}`, {
    details: { url: display, ...details },
    hint,
  });
}
