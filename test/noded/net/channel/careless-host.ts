import { createSocket } from 'node:dgram';
import type { Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Server } from 'node:net';
import { inNetworkNamespace, openDeviceSocket } from '#shared/sys/network-sockets.ts';
import type { ChannelNetwork } from '../../../../noded/net/channel/channel-network.ts';

/** A TCP service on a TAP that takes every connection and says nothing. */
export async function listen(
  { namespacePath }: ChannelNetwork,
  device: string,
  address: string,
  port: number,
): Promise<Server> {
  const fd = inNetworkNamespace(namespacePath, () =>
    openDeviceSocket({ device, type: 'tcp', address, port }),
  );
  const server = createServer((socket) => socket.on('error', () => undefined));
  const listening = once(server, 'listening');
  server.listen({ fd });
  await listening;
  return server;
}

/** A UDP service on a TAP. */
export async function receive(
  { namespacePath }: ChannelNetwork,
  device: string,
  port: number,
  onMessage: (text: string) => void,
): Promise<Socket> {
  const fd = inNetworkNamespace(namespacePath, () =>
    openDeviceSocket({ device, type: 'udp', address: '0.0.0.0', port }),
  );
  const socket = createSocket('udp4');
  const listening = once(socket, 'listening');
  socket.on('message', (message) => onMessage(message.toString()));
  socket.bind({ fd });
  await listening;
  return socket;
}
