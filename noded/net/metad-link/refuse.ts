import type { ServerResponse } from 'node:http';

/** An answer in words; metad passes them on. */
export function refuse(response: ServerResponse, status: number, reason: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(`${reason}\n`);
}
