import type { IncomingMessage } from 'node:http';
import type { Request } from 'got';
import { AppError, toError, type JsonValue } from '#shared/errors/app-error.ts';
import { limitSilence } from '#shared/stream/limit-silence.ts';
import { reveal } from '#shared/secret/secret.ts';
import { askWeb, WebRefusal, MAX_SILENCE_MS } from './ask-web.ts';
import type { ByteSource, Opened, OpenRequest } from './byte-source.ts';
import { findLogin, type Login } from './netrc.ts';
import { ForbiddenAddressError, SsrfGuard } from './ssrf-guard.ts';
import { formatUrl, loginOf } from './source-url.ts';

export interface HttpSourceOptions {
  readonly url: URL;
  readonly login?: Login | undefined;
  readonly netrc: string;
  readonly certificateAuthority?: string | undefined;
  readonly remoteHosts: readonly string[];
}

const MAX_REDIRECTS = 10;

/** A file on a web server. Each redirection is checked like the first request. */
export function createHttpSource(options: HttpSourceOptions): ByteSource {
  const display = formatUrl(options.url);
  // Shared by all attempts: a name whose address changes meanwhile cannot lead nearer either.
  const guard = new SsrfGuard(options.url, options.remoteHosts);
  const authorization = authorizationOf(options);
  return {
    display,
    async open(request) {
      const { offset, validators, signal } = request;
      const { url, response, body } = await askWeb({
        url: options.url,
        method: 'GET',
        headersFor: (hop) => ({
          // A login is sent to its own origin only.
          ...(hop.origin === options.url.origin && authorization),
          ...(offset > 0 && { range: `bytes=${offset}-` }),
          ...(validators && conditions(offset, validators.etag, validators.lastModified)),
        }),
        guard,
        maxRedirects: MAX_REDIRECTS,
        signal,
        certificateAuthority: options.certificateAuthority,
      }).catch((error: unknown) => {
        throw classify(error, display, signal);
      });
      if (response.statusCode === 416 && offset > 0) {
        // The file became shorter than the bytes received, so it is another version.
        body.destroy();
        return this.open({ ...request, offset: 0, validators: null });
      }
      return interpret(body, response, request, url);
    },
  };
}

function authorizationOf({ url, login, netrc }: HttpSourceOptions): Record<string, string> {
  const found = login ?? loginOf(url) ?? findLogin(netrc, url);
  if (!found) return {};
  const pair = Buffer.from(`${found.user}:${reveal(found.password)}`);
  return { authorization: `Basic ${pair.toString('base64')}` };
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

/** Returns the range of the body; undefined when it is not the file. */
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

/** Refuses web pages: login pages and mirrors' error pages come with status 200 too. */
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
      ? 'Give user and password (netrc file, or --personalization-user for a package).'
      : 'Check the URL.';
  return failure(formatUrl(url), `the server answered ${message}`, { status }, hint);
}

async function* readBody(
  stream: Request,
  url: URL,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void> {
  try {
    yield* limitSilence(stream, MAX_SILENCE_MS);
  } catch (error) {
    throw classify(error, formatUrl(url), signal);
  } finally {
    stream.destroy();
  }
}

function classify(error: unknown, display: string, signal: AbortSignal): Error {
  if (signal.aborted && signal.reason instanceof Error) return signal.reason;
  const whole = toError(error);
  if (whole instanceof ForbiddenAddressError)
    return failure(display, `${whole.message}, which is refused`);
  if (whole instanceof WebRefusal) return failure(display, whole.message);
  const code = 'code' in whole && typeof whole.code === 'string' ? whole.code : '';
  const isCertificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/.test(code);
  if (isCertificate) {
    const hint =
      'Check the URL. Trust a private authority with gnt-cluster modify --image-ca @FILE';
    return failure(display, whole.message, {}, hint);
  }
  if (code === 'ENOTFOUND') return failure(display, whole.message, {}, 'Check the URL.', whole);
  return whole;
}

function failure(
  display: string,
  reason: string,
  details: Record<string, JsonValue> = {},
  hint = 'Check the URL.',
  cause?: Error,
): AppError {
  return new AppError('DOWNLOAD_FAILED', `cannot download ${display}: ${reason}`, {
    details: { url: display, ...details },
    hint,
    cause,
  });
}
