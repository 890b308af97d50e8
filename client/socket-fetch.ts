import { request as requestHttp } from 'node:http';
import { Readable } from 'node:stream';

/**
 * Returns a `fetch` for programs on a node: it sends requests to a unix socket, such as
 * /run/gnt/noded.sock, whatever the host of their URL.
 */
export function createSocketFetch(socketPath: string): (request: Request) => Promise<Response> {
  return async (request) => {
    const body = request.body === null ? undefined : Buffer.from(await request.arrayBuffer());
    const { pathname, search } = new URL(request.url);
    return await new Promise((resolve, reject) => {
      const { method, signal } = request;
      const headers = Object.fromEntries(request.headers);
      const path = `${pathname}${search}`;
      const sent = requestHttp({ socketPath, method, path, headers, signal }, (answer) => {
        const { statusCode = 502, headersDistinct } = answer;
        const pairs = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
          values.map((value): [string, string] => [name, value]),
        );
        const isEmpty = statusCode === 204 || statusCode === 304;
        // The types of Node and of the DOM for the same stream differ.
        const stream = isEmpty ? null : (Readable.toWeb(answer) as ReadableStream);
        resolve(new Response(stream, { status: statusCode, headers: pairs }));
      });
      sent.on('error', reject);
      sent.end(body);
    });
  };
}
