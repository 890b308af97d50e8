import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import got from 'got';
import { messageOf } from '#shared/errors/app-error.ts';
import { refusalOf, safeLookup } from './transfer/address-policy.ts';
import { trusted } from './transfer/http-source.ts';
import { isBelow, mirrorUrl } from './mirror-url.ts';

export interface MirrorRequest {
  readonly method: 'GET' | 'HEAD';
  /** Percent-encoded, below the mirror's URL. */
  readonly path: string;
  /** Of the reader; only {@link PASSED} are passed on. */
  readonly headers: IncomingHttpHeaders;
  readonly signal: AbortSignal;
}

export type MirrorAnswer =
  | {
      readonly kind: 'answer';
      readonly status: 200 | 206 | 304 | 416;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: Readable;
    }
  | { readonly kind: 'refusal'; readonly status: 400 | 404 | 502; readonly reason: string };

const PASSED = ['range', 'if-range', 'if-none-match', 'if-modified-since'] as const;
const RETURNED = [
  'content-length',
  'content-range',
  'content-type',
  'accept-ranges',
  'etag',
  'last-modified',
] as const;
const MAX_REDIRECTS = 5;
/** No package comes near it; it bounds what one request costs. */
export const MAX_FILE_BYTES = 8 * 1024 ** 3;
/** For a whole transfer, however slowly the reader takes it. */
const MAX_TRANSFER_MS = 3_600_000;
const timeouts = {
  lookup: 15_000,
  connect: 20_000,
  secureConnect: 20_000,
  response: 40_000,
  /** Without a byte. */
  socket: 60_000,
} as const;

/**
 * Asks a mirror for one file, with no login of the host's. Redirections are followed where they stay below `base`, since the
 * administrator allowed that and nothing else.
 * @param base URL that was allowed
 */
export async function askMirror(base: string, request: MirrorRequest): Promise<MirrorAnswer> {
  let url = mirrorUrl(base, request.path);
  if (url === null) return refusal(400, 'this path could lead out of the mirror');
  try {
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const forbidden = refusalOf(url);
      if (forbidden !== undefined) return refusal(502, `the mirror cannot be used: ${forbidden}`);
      const { response, body } = await ask(url, request);
      const { location } = response.headers;
      const isRedirect = [301, 302, 303, 307, 308].includes(response.statusCode ?? 0);
      if (!isRedirect || location === undefined) return interpret(response, body);
      body.destroy();
      url = URL.parse(location, url);
      if (url === null || !isBelow(url, base)) {
        return refusal(502, 'the mirror redirects to a place that is not allowed');
      }
    }
  } catch (error) {
    if (request.signal.aborted) throw error;
    return refusal(502, `the mirror cannot be read: ${messageOf(error)}`);
  }
  return refusal(502, `the mirror redirects more than ${MAX_REDIRECTS} times`);
}

async function ask(
  url: URL,
  { method, headers, signal }: MirrorRequest,
): Promise<{ response: IncomingMessage; body: Readable }> {
  const passed = PASSED.map((name) => [name, headers[name]]).filter(([, value]) => value);
  const stream = got.stream(url, {
    method,
    headers: {
      'user-agent': 'gnt-noded',
      'accept-encoding': 'identity',
      ...(Object.fromEntries(passed) as Record<string, string>),
    },
    signal: AbortSignal.any([signal, AbortSignal.timeout(MAX_TRANSFER_MS)]),
    decompress: false,
    followRedirect: false,
    throwHttpErrors: false,
    retry: { limit: 0 },
    timeout: timeouts,
    dnsLookup: safeLookup,
    ...(url.protocol === 'https:' && { https: { certificateAuthority: trusted() } }),
  });
  return new Promise((resolve, reject) => {
    stream.once('error', reject);
    stream.once('response', (response: IncomingMessage) => {
      stream.off('error', reject);
      // Whoever reads the body is told; without a reader nobody needs to know.
      stream.on('error', () => undefined);
      resolve({ response, body: stream });
    });
  });
}

function interpret(response: IncomingMessage, body: Readable): MirrorAnswer {
  const status = response.statusCode ?? 0;
  if (status !== 200 && status !== 206 && status !== 304 && status !== 416) {
    body.destroy();
    if (status === 404 || status === 410) return refusal(404, 'the mirror has no such file');
    return refusal(502, `the mirror answered ${status} ${response.statusMessage ?? ''}`.trimEnd());
  }
  const length = response.headers['content-length'];
  if (length !== undefined && Number(length) > MAX_FILE_BYTES) {
    body.destroy();
    return refusal(502, `the file has more than ${MAX_FILE_BYTES} bytes`);
  }
  const found = RETURNED.map((name) => [name, response.headers[name]]).filter(([, value]) => value);
  const headers = Object.fromEntries(found) as Record<string, string>;
  return { kind: 'answer', status, headers, body };
}

function refusal(status: 400 | 404 | 502, reason: string): MirrorAnswer {
  return { kind: 'refusal', status, reason };
}
