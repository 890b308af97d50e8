import type { ServerResponse } from 'node:http';

/** Answers with plain text, which metad passes on. */
export function refuse(response: ServerResponse, status: number, reason: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(`${reason}\n`);
}
