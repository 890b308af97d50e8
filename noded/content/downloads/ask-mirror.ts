import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { messageOf } from '#shared/errors/app-error.ts';
import {
  FILE_ANSWER_HEADERS,
  FILE_REQUEST_HEADERS,
  pickHeaders,
} from '#shared/http/file-headers.ts';
import { GIB } from '#shared/units/bytes.ts';
import { isBelow, mirrorUrl } from './mirror-url.ts';
import { limitSilence } from '#shared/stream/limit-silence.ts';
import { askWeb, MAX_SILENCE_MS } from './transfer/ask-web.ts';
import { SsrfGuard } from './transfer/ssrf-guard.ts';

export interface MirrorRequest {
  readonly method: 'GET' | 'HEAD';
  /** Percent-encoded, relative to the mirror's URL. */
  readonly path: string;
  /** The reader's headers. Only {@link FILE_REQUEST_HEADERS} are passed on. */
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

/** Statuses of servers that do not support HEAD. They are asked with GET instead. */
const NO_HEAD_STATUSES: readonly number[] = [400, 403, 405, 501];
const MAX_REDIRECTS = 5;
/** Bounds the cost of one request. No package is nearly as large. */
export const MAX_FILE_BYTES = 8 * GIB;
const MAX_TRANSFER_MS = 3_600_000;

/**
 * Requests one file from a mirror, without a login. Redirections are followed only below `base`,
 * since the administrator allowed nothing else.
 * @param base the allowed URL
 */
export async function askMirror(base: string, request: MirrorRequest): Promise<MirrorAnswer> {
  const url = mirrorUrl(base, request.path);
  if (url === null) return refusal(400, 'this path could lead outside of the mirror');
  const headers = pickHeaders(request.headers, FILE_REQUEST_HEADERS);
  const ask = (method: MirrorRequest['method']): ReturnType<typeof askWeb> =>
    askWeb({
      url,
      method,
      headersFor: () => headers,
      guard: new SsrfGuard(url, []),
      maxRedirects: MAX_REDIRECTS,
      mayFollow: (target) => isBelow(target, base),
      signal: AbortSignal.any([request.signal, AbortSignal.timeout(MAX_TRANSFER_MS)]),
    });
  try {
    const first = await ask(request.method);
    const isRefused = NO_HEAD_STATUSES.includes(first.response.statusCode ?? 0);
    if (request.method === 'GET' || !isRefused) return interpret(first.response, first.body);
    first.body.destroy();
    const { response, body } = await ask('GET');
    return interpret(response, body);
  } catch (error) {
    if (request.signal.aborted) throw error;
    return refusal(502, `the mirror cannot be read: ${messageOf(error)}`);
  }
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
    return refusal(502, `the file exceeds ${MAX_FILE_BYTES} bytes`);
  }
  return {
    kind: 'answer',
    status,
    headers: pickHeaders(response.headers, FILE_ANSWER_HEADERS),
    body: Readable.from(limitSilence(body, MAX_SILENCE_MS), { objectMode: false }),
  };
}

function refusal(status: 400 | 404 | 502, reason: string): MirrorAnswer {
  return { kind: 'refusal', status, reason };
}
