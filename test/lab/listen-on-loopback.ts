import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';

/** Makes a server listen on 127.0.0.1. @returns the port that the system chose */
export async function listenOnLoopback(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A TCP server's address is an object.
  return (server.address() as AddressInfo).port;
}
