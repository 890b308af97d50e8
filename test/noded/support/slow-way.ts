import { randomBytes } from 'node:crypto';
import { createConnection, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { RedisServer } from './redis-server.ts';

/** The way to Redis of one node, which can be made to carry nothing towards it for a while. */
export async function startWay(
  t: TestContext,
  redis: Pick<RedisServer, 'directory' | 'socket'>,
): Promise<{ url: string; hold(): void; letGo(): void }> {
  const path = join(redis.directory, `way-${randomBytes(4).toString('hex')}.sock`);
  const fromRedis: Socket[] = [];
  const sockets = new Set<Socket>();
  const way = createServer((near) => {
    const far = createConnection(redis.socket);
    fromRedis.push(far);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('error', () => undefined).on('close', () => other.destroy());
    }
    near.pipe(far);
    far.pipe(near);
  });
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    way.close();
  });
  await new Promise<void>((resolve) => way.listen(path, resolve));
  return {
    url: `unix:${path}`,
    hold: () => fromRedis.forEach((socket) => void socket.unpipe().pause()),
    letGo: () =>
      fromRedis.forEach((socket, index) => {
        const near = [...sockets][index * 2];
        if (near !== undefined) socket.pipe(near);
      }),
  };
}
