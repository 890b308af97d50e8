import { request } from 'node:http';
import { text } from 'node:stream/consumers';

export interface SocketAnswer {
  readonly status: number;
  readonly body: string;
}

/**
 * Sends one HTTP request to a daemon's socket.
 * @throws the connection's error if nothing listens
 */
export async function askSocket(
  socketPath: string,
  path: string,
  options: { readonly method?: string; readonly body?: unknown } = {},
): Promise<SocketAnswer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        socketPath,
        path,
        method: options.method ?? 'GET',
        headers: { host: 'daemon', 'content-type': 'application/json' },
        agent: false,
      },
      (response) => {
        text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
      },
    );
    outgoing.once('error', reject);
    outgoing.end(options.body === undefined ? undefined : JSON.stringify(options.body));
  });
}
