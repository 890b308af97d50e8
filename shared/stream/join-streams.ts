import type { Duplex } from 'node:stream';

/**
 * Passes bytes both ways; the end of one direction leaves the other one open, and a stream that
 * breaks takes the other along.
 */
export function joinStreams(left: Duplex, right: Duplex): void {
  for (const [from, to] of [
    [left, right],
    [right, left],
  ] as const) {
    from.pipe(to);
    from.on('error', () => to.destroy());
    // One that closes before both of its directions have ended: the other side must neither wait
    // for more nor go on sending.
    from.on('close', () => {
      if (!from.readableEnded || !from.writableFinished) to.destroy();
    });
  }
}
