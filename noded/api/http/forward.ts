import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Context, Middleware, Next } from 'koa';
import { BUILD_HEADER } from '#shared/build/build-id.ts';
import { OFFSET_HEADER } from '#shared/contract/metad-control.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import { requestPeer, type Peers } from '../../cluster/peers/ask-peer.ts';
import { readBody } from './read-body.ts';
import { untilGone } from './until-gone.ts';

/** The nodes that requests are forwarded to. */
export interface Forwarding {
  readonly peers: Peers;
  readonly instances: InstanceRepository;
  readonly owns: (node: string) => boolean;
}

/**
 * Resources below an instance, which its node serves. The overview answers for the instance itself.
 */
const OF_INSTANCE = /^\/v1\/instances\/([a-z0-9.-]+)\/./;
const KEPT_HEADERS = [
  'content-type',
  'content-length',
  OFFSET_HEADER.toLowerCase(),
  'retry-after',
  BUILD_HEADER,
];

/** Creates a middleware that forwards requests to the instance's node. */
export function forwardToOwner(forwarding: Forwarding): Middleware {
  return async (context: Context, next: Next): Promise<void> => {
    const node = await ownerOf(context.path, forwarding);
    if (node === undefined) {
      await next();
      return;
    }
    const { method, url } = context;
    const bytes = await readBody(context.req);
    const answer = await requestPeer(forwarding.peers, node, {
      method,
      path: url,
      signal: untilGone(context.res),
      ...(bytes.length > 0 && { body: { type: context.get('content-type'), bytes } }),
    });
    context.status = answer.statusCode ?? 502;
    for (const name of KEPT_HEADERS) {
      const value = ownValue(answer.headers, name);
      if (value !== undefined) context.set(name, value);
    }
    if (context.status === 204) answer.resume();
    else context.body = answer;
  };
}

/**
 * Forwards an upgrade and its answer unchanged.
 * @returns false if it is for this node
 */
export async function forwardUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  forwarding: Forwarding,
): Promise<boolean> {
  const url = request.url ?? '';
  const node = await ownerOf(url.split('?')[0] ?? '', forwarding);
  if (node === undefined) return false;
  const stream = await forwarding.peers.open(node);
  stream.on('error', () => socket.destroy());
  socket.on('close', () => stream.destroy());
  if (socket.destroyed) stream.destroy();
  stream.write(
    `GET ${url} HTTP/1.1\r\nHost: ${node}\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n`,
  );
  stream.write(head);
  socket.pipe(stream);
  stream.pipe(socket);
  return true;
}

async function ownerOf(path: string, { instances, owns }: Forwarding): Promise<string | undefined> {
  const name = OF_INSTANCE.exec(path)?.[1];
  if (name === undefined) return undefined;
  try {
    const { primaryNode } = await instances.findByName(await instances.expandName(name));
    return owns(primaryNode) ? undefined : primaryNode;
  } catch (error) {
    if (isAppError(error, 'INSTANCE_NOT_FOUND')) return undefined;
    throw error;
  }
}
