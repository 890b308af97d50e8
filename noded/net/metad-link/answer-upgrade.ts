import type { Duplex } from 'node:stream';

/** Answers with status 101. From here on the connection is a raw stream. */
export function acceptUpgrade(socket: Duplex): void {
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: tcp\r\nConnection: Upgrade\r\n\r\n');
}

/** @param status with its reason phrase, such as `404 Not Found` */
export function refuseUpgrade(socket: Duplex, status: string, reason: string): void {
  const body = `${reason}\n`;
  const lines = [`HTTP/1.1 ${status}`, `Content-Length: ${body.length}`, 'Connection: close'];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
}
