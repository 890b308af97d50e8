import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Address } from '../dialects/address.ts';
import { DRAIN_TIMEOUT_MS, MAX_BODY_PIECES, MAX_DRAINED_BYTES } from '../config/limits.ts';

/** Returns whether a body is incomplete, as far as the headers tell. */
export function hasUnreadBody({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  return headers['transfer-encoding'] !== undefined || !isZero(headers['content-length']);
}

function isZero(contentLength: string | undefined): boolean {
  return contentLength === undefined || Number(contentLength) === 0;
}

/**
 * Sends a short text, or no body for ''. Closes the connection when the request's body is unread.
 */
export function sendText(
  response: ServerResponse,
  status: number,
  text: string,
  headers: readonly string[] = [],
): void {
  if (hasUnreadBody(response.req)) {
    sendTextAndClose(response.req, response, status, text, headers);
    return;
  }
  const body = Buffer.from(text && `${text}\n`);
  response.writeHead(status, [...plainText(body), ...headers]);
  if (response.req.method === 'HEAD') response.end();
  else response.end(body);
}

/**
 * Refuses without a body in the EC2 tree and at unknown paths: systemd's client (`systemd-imdsd`)
 * fails its import on a 401 or 404 that has one.
 */
export function refuseAddress(
  response: ServerResponse,
  address: Address | undefined,
  status: 401 | 404,
  text: string,
): void {
  const isEc2 = address === undefined || (address.kind === 'entry' && address.dialect === 'ec2');
  sendText(response, status, isEc2 ? '' : text);
}

function plainText(body: Buffer): readonly string[] {
  return ['Content-Type', 'text/plain; charset=utf-8', 'Content-Length', String(body.length)];
}

export function sendEmpty(
  response: ServerResponse,
  status: number,
  headers: readonly string[] = [],
): void {
  response.writeHead(status, [...headers]);
  response.end();
}

/**
 * Answers a request whose body is incomplete. The rest is dropped, within bounds, before the
 * connection is closed: closing with unread bytes would send a reset, which can overtake the
 * answer.
 */
function sendTextAndClose(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  text: string,
  headers: readonly string[] = [],
): void {
  const body = Buffer.from(text && `${text}\n`);
  response.writeHead(status, [
    ...plainText(body),
    ...(headers.includes('Connection') ? [] : ['Connection', 'close']),
    ...headers,
  ]);
  response.write(body);
  let drained = 0;
  let pieces = 0;
  const finish = (): void => {
    clearTimeout(timer);
    response.end();
    if (!request.complete) request.socket.destroySoon();
  };
  const timer = setTimeout(finish, DRAIN_TIMEOUT_MS);
  request.on('data', (chunk: Buffer) => {
    drained += chunk.length;
    pieces++;
    if (drained > MAX_DRAINED_BYTES || pieces > MAX_BODY_PIECES) finish();
  });
  request.on('end', finish);
  request.on('close', () => clearTimeout(timer));
  request.resume();
}
