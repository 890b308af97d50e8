import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const PIECES = 32;
const PIECE_DELAY_MS = 30;

/**
 * A web server that serves one image under any path, in about a second, and can be killed and
 * restarted.
 */
export class MortalImageServer {
  readonly #content: Buffer;
  #server: Server | undefined;
  #port = 0;

  constructor(content: Buffer) {
    this.#content = content;
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.#port}/${path}`;
  }

  get isUp(): boolean {
    return this.#server !== undefined;
  }

  /** Starts, again on the former port. */
  async start(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = createServer((request, response) => {
      const first = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
      const total = this.#content.length;
      response.writeHead(first === 0 ? 200 : 206, {
        'content-length': total - first,
        'accept-ranges': 'bytes',
        etag: `"${request.url ?? ''}"`,
        ...(first > 0 && { 'content-range': `bytes ${first}-${total - 1}/${total}` }),
      });
      const send = async (): Promise<void> => {
        const step = Math.ceil(total / PIECES);
        for (let at = first; at < total && !response.destroyed; at += step) {
          response.write(this.#content.subarray(at, at + step));
          await sleep(PIECE_DELAY_MS);
        }
        response.end();
      };
      void send();
    });
    server.listen(this.#port, '127.0.0.1');
    await once(server, 'listening');
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Closes all connections and stops listening. */
  async kill(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  }
}
