import { createHash, createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

const hash = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer =>
  createHmac('sha256', key).update(text).digest();

/** The parts of a signed request that a service looks up. */
interface Signed {
  readonly accessKeyId: string;
  readonly sessionToken: string;
}

export function readSigned({ headers }: IncomingMessage): Signed | undefined {
  const [, accessKeyId] =
    /^AWS4-HMAC-SHA256 Credential=(\w+)\//.exec(headers.authorization ?? '') ?? [];
  const token = headers['x-amz-security-token'];
  if (accessKeyId === undefined || typeof token !== 'string') return undefined;
  return { accessKeyId, sessionToken: token };
}

/** Verifies a request without a body as S3 does (AWS Signature Version 4). */
export function isSignedWith(request: IncomingMessage, secretAccessKey: string): boolean {
  const { headers, method = '' } = request;
  const [, scope = '', names = '', signature] =
    /Credential=\w+\/([^,]+),\s*SignedHeaders=([^,]+),\s*Signature=([0-9a-f]+)$/.exec(
      headers.authorization ?? '',
    ) ?? [];
  const [date = '', region = '', service = '', end = ''] = scope.split('/');
  const url = new URL(request.url ?? '/', 'http://localhost');
  const query = [...url.searchParams]
    .map((pair) => pair.map(encodeURIComponent).join('='))
    .toSorted()
    .join('&');
  const signed = names.split(';');
  // The host must be signed, or the request could be sent elsewhere.
  if (!signed.includes('host') || !signed.includes('x-amz-security-token')) return false;
  const lines = signed.map((name) => `${name}:${String(headers[name] ?? '').trim()}\n`);
  const content = String(headers['x-amz-content-sha256'] ?? hash(''));
  const canonical = [method, url.pathname, query, lines.join(''), names, content].join('\n');
  const time = String(headers['x-amz-date']);
  if (!time.startsWith(date) || !['UNSIGNED-PAYLOAD', hash('')].includes(content)) return false;
  const text = ['AWS4-HMAC-SHA256', time, scope, hash(canonical)].join('\n');
  const key = [date, region, service, end].reduce<string | Buffer>(
    (former, part) => hmac(former, part),
    `AWS4${secretAccessKey}`,
  );
  return createHmac('sha256', key).update(text).digest('hex') === signature;
}
