import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { inNetworkNamespace, openDeviceSocket } from '#shared/sys/network-sockets.ts';
import { encodeQuestion } from '../../support/dns-responder.ts';

/** The service that guests ask, and how long they wait for it. */
export const PORT = 1053;
export const SERVICE = '169.254.169.254';
export const PATIENCE_MS = 10_000;

/** A UDP socket in a guest. */
export interface UdpClient {
  readonly socket: Socket;
  readonly messages: readonly Buffer[];
  send(datagram: Buffer): void;
  /** Asks for an address of a name; its number is the name's length. */
  ask(name: string): void;
  /** Whether so many messages have come in time. */
  heard(count: number, ms?: number): Promise<boolean>;
}

export interface UdpClientOptions {
  /** The guest's. */
  readonly namespace: string | undefined;
  readonly address: string;
  readonly port: number;
}

export function openUdpClient({ namespace, address, port }: UdpClientOptions): UdpClient {
  const fd = inNetworkNamespace(`/run/netns/${namespace}`, () =>
    openDeviceSocket({ device: 'eth0', type: 'udp', address, port }),
  );
  const socket = createSocket('udp4');
  const messages: Buffer[] = [];
  socket.on('message', (message) => messages.push(message));
  socket.on('error', () => undefined);
  socket.bind({ fd });
  const send = (datagram: Buffer): void => socket.send(datagram, PORT, SERVICE, () => undefined);
  return {
    socket,
    messages,
    send,
    ask: (name) => send(encodeQuestion(name.length, name)),
    heard: async (count, ms = PATIENCE_MS) => {
      const signal = AbortSignal.timeout(ms);
      try {
        while (messages.length < count) await once(socket, 'message', { signal });
      } catch (error) {
        if (!signal.aborted) throw error;
      }
      return messages.length >= count;
    },
  };
}
