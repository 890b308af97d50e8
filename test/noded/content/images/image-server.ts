import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { listenOnLoopback } from '../../../lab/listen-on-loopback.ts';

export interface ImageServerOptions {
  content: Buffer;
  etag?: string | undefined;
  lastModified?: string | undefined;
  ranges?: boolean;
  /** Closes the connection after so many bytes of each of the first `cuts` answers. */
  cutAfter?: number;
  cuts?: number;
  /** Without Content-Length. */
  chunked?: boolean;
  /** Bytes per chunk; each waits for `gate`. */
  gate?: Promise<void>;
  /** Answers instead of the file. */
  intercept?: (request: IncomingMessage, response: ServerResponse) => boolean;
  tls?: { key: string; cert: string };
}

export interface ImageServer {
  readonly url: string;
  readonly port: number;
  readonly options: ImageServerOptions;
  /** Method, range and condition of each request. */
  readonly requests: IncomingMessage[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a web server with one file and the given faults. Options may be changed while it runs. */
export async function startImageServer(options: ImageServerOptions): Promise<ImageServer> {
  const requests: IncomingMessage[] = [];
  const handler = (request: IncomingMessage, response: ServerResponse): void => {
    requests.push(request);
    if (options.intercept?.(request, response)) return;
    void answer(request, response, options);
  };
  const server = options.tls ? createTlsServer(options.tls, handler) : createServer(handler);
  const port = await listenOnLoopback(server);
  return {
    url: `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}/image`,
    port,
    options,
    requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  options: ImageServerOptions,
): Promise<void> {
  const { content, etag, lastModified } = options;
  if (etag !== undefined) response.setHeader('etag', etag);
  if (lastModified !== undefined) response.setHeader('last-modified', lastModified);
  const isKnown =
    (etag !== undefined && request.headers['if-none-match'] === etag) ||
    (etag === undefined &&
      lastModified !== undefined &&
      request.headers['if-modified-since'] === lastModified);
  if (isKnown) return void response.writeHead(304).end();

  const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
  const condition = request.headers['if-range'];
  const isRange =
    from > 0 &&
    options.ranges !== false &&
    (condition === undefined || condition === (etag ?? lastModified));
  if (isRange && from >= content.length) {
    return void response.writeHead(416, { 'content-range': `bytes */${content.length}` }).end();
  }
  const body = isRange ? content.subarray(from) : content;
  response.writeHead(isRange ? 206 : 200, {
    ...(options.chunked ? {} : { 'content-length': body.length }),
    ...(isRange && { 'content-range': `bytes ${from}-${content.length - 1}/${content.length}` }),
  });
  const isCut = options.cutAfter !== undefined && (options.cuts ?? 0) > 0;
  if (isCut) options.cuts = (options.cuts ?? 0) - 1;
  const sent = isCut ? body.subarray(0, options.cutAfter) : body;
  if (options.gate) {
    response.write(sent.subarray(0, sent.length / 2));
    await options.gate;
  }
  const rest = options.gate ? sent.subarray(sent.length / 2) : sent;
  if (isCut) response.write(rest, () => response.socket?.destroySoon());
  else response.end(rest);
}
