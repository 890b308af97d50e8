import type { Socket } from 'node:net';
import { generateRequest } from './request-generator.ts';

const REQUESTS_PER_CONNECTION = 4;
/** The client gives up a request whose body never arrives. */
const CLIENT_PATIENCE_MS = 300;
const LAST = 'GET / HTTP/1.1\r\nHost: 169.254.169.254\r\nConnection: close\r\n\r\n';

/** A guest gets one of these or nothing, whatever it sends. */
export const EXPECTED_STATUSES: ReadonlySet<number> = new Set([
  100, 200, 204, 304, 400, 401, 403, 404, 405, 408, 409, 411, 413, 416, 417, 429, 431, 501, 505,
]);

/**
 * Sends generated requests at once over a new connection, and a correct one after them.
 * @returns the statuses of the answers until the end of the connection
 */
export async function fuzzConnection(
  socket: Socket,
  random: (below: number) => number,
  patienceMs = CLIENT_PATIENCE_MS,
): Promise<readonly number[]> {
  const requests = Array.from({ length: REQUESTS_PER_CONNECTION }, () => generateRequest(random));
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  socket.on('error', () => undefined);
  socket.setTimeout(patienceMs, () => socket.destroy());
  socket.on('end', () => socket.destroy());
  socket.write(Buffer.concat([...requests, Buffer.from(LAST)]));
  await new Promise((resolve) => socket.on('close', resolve));
  return Array.from(text.matchAll(/^HTTP\/1\.1 (\d{3}) /gm), (match) => Number(match[1]));
}
