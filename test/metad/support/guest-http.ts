import { request } from 'node:http';
import type { ClientRequest } from 'node:http';
import { Socket } from 'node:net';
import { inNetworkNamespace, openDeviceClientSocket } from '#shared/sys/network-sockets.ts';
import { type Answer, readAnswer } from './channel-lab.ts';

const SERVICE = '169.254.169.254';

/** Opens a connection to the service from a guest's network namespace. */
export function connectFromGuest(namespace: string): Socket {
  const fd = inNetworkNamespace(`/run/netns/${namespace}`, () => openDeviceClientSocket('eth0'));
  const socket = new Socket({ fd, allowHalfOpen: true, readable: true, writable: true });
  socket.connect({ host: SERVICE, port: 80 });
  return socket;
}

export interface GuestRequest {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer | undefined;
  readonly signal?: AbortSignal;
}

/** Sends one request on its own connection, with exactly this path. */
export async function askFromGuest(
  namespace: string,
  path: string,
  options: GuestRequest = {},
): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const outgoing: ClientRequest = request(
      {
        host: SERVICE,
        path,
        method: options.method ?? 'GET',
        headers: { connection: 'close', ...options.headers },
        createConnection: () => connectFromGuest(namespace),
        ...(options.signal && { signal: options.signal }),
      },
      (incoming) => {
        resolve(readAnswer(incoming));
      },
    );
    outgoing.on('error', reject);
    outgoing.end(options.body);
  });
}

/** Sends raw bytes and collects the answer until the service closes, or until it suffices. */
export async function sendRaw(
  namespace: string,
  bytes: string | Buffer,
  isEnough: (text: string) => boolean = () => false,
): Promise<string> {
  return await new Promise((resolve, reject) => {
    const socket = connectFromGuest(namespace);
    let text = '';
    socket.setTimeout(20_000, () => socket.destroy(new Error('no answer')));
    socket.on('error', (error) => (text === '' ? reject(error) : resolve(text)));
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      if (isEnough(text)) socket.destroy();
    });
    socket.on('end', () => socket.destroy());
    socket.on('close', () => resolve(text));
    socket.write(bytes);
  });
}
