import type { ServerResponse } from 'node:http';

/** Answers with plain text, which metad passes on. @param headers names and values in turn */
export function refuse(
  response: ServerResponse,
  status: number,
  reason: string,
  headers: readonly string[] = [],
): void {
  response.writeHead(status, ['content-type', 'text/plain; charset=utf-8', ...headers]);
  response.end(`${reason}\n`);
}
