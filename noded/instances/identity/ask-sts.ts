import { plainText } from '#shared/text/plain-text.ts';
import { createMask } from '#shared/secret/mask.ts';
import { collect } from '#shared/stream/collect.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import { askWeb } from '../../content/downloads/transfer/ask-web.ts';
import { formatUrl } from '../../content/downloads/transfer/source-url.ts';
import { SsrfGuard } from '../../content/downloads/transfer/ssrf-guard.ts';
import { ExchangeFailure } from './credential-cache.ts';

/** From the connection to the end of the answer. */
const TIMEOUT_MS = 10_000;
/** Credentials with a long session token have about 4 KiB. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** Of a foreign reason in the log. */
const MAX_REASON_LENGTH = 300;
/** Error codes of services, which guests may see. */
const ERROR_CODE = /^[A-Za-z][\w.]{0,63}$/;

export interface StsRequest {
  readonly url: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Bearer tokens in the request, which an answer may repeat. */
  readonly secrets: readonly string[];
  /** PEM certificates to trust besides the system's. */
  readonly certificateAuthority: string | undefined;
}

/** Reads the error code and the reason in a service's answer. */
type ReadError = (text: string) => { readonly code?: unknown; readonly reason?: unknown };

/**
 * Posts a request for credentials. Follows no redirection, which would carry the token elsewhere.
 * @returns the answer of status 200
 * @throws ExchangeFailure
 */
export async function askSts(request: StsRequest, readError: ReadError): Promise<string> {
  const { status, text } = await post(request);
  if (status === 200) return text;
  const { code, reason } = readError(text);
  const mask = createMask(request.secrets, MAX_REASON_LENGTH);
  const shown = plainText(mask(typeof reason === 'string' ? reason : '')).replaceAll('\n', ' ');
  const known = typeof code === 'string' && ERROR_CODE.test(code) ? code : null;
  const details = [known, shown].filter((part) => part !== null && part !== '').join(': ');
  const server = formatUrl(new URL(request.url));
  throw new ExchangeFailure(
    `${server} answered ${status}${details && `: ${details}`}`,
    // 429 and server errors do not tell about the request.
    status >= 400 && status < 500 && status !== 429 ? (known ?? `status ${status}`) : null,
  );
}

async function post(
  request: StsRequest,
): Promise<{ readonly status: number; readonly text: string }> {
  const { url, body, headers, certificateAuthority } = request;
  const target = new URL(url);
  try {
    const answer = await askWeb({
      ...{ url: target, method: 'POST', body, certificateAuthority },
      headersFor: () => headers,
      guard: new SsrfGuard(target, []),
      maxRedirects: 0,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    try {
      const content = await collect(answer.body, MAX_ANSWER_BYTES);
      return { status: answer.response.statusCode ?? 0, text: content.toString('utf8') };
    } finally {
      answer.body.destroy();
    }
  } catch (error) {
    const reason = `${formatUrl(target)} cannot be used: ${messageOf(error)}`;
    throw new ExchangeFailure(reason, null, error);
  }
}
