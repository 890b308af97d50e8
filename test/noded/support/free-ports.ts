import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Ports of the loopback that nobody listened on a moment ago, for programs that are told theirs.
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
  return ports;
}
