import type { Duplex, Transform } from 'node:stream';

/**
 * Passes bytes in both directions. The end of one direction leaves the other one open; a broken
 * stream destroys the other one.
 * @param slowed passes bytes from left to right
 */
export function joinStreams(left: Duplex, right: Duplex, slowed?: Transform): void {
  for (const [from, to, by] of [
    [left, right, slowed],
    [right, left, undefined],
  ] as const) {
    if (by === undefined) from.pipe(to);
    else from.pipe(by).pipe(to);
    from.on('error', () => to.destroy());
    // After an early close the other side must neither wait nor continue to send.
    from.on('close', () => {
      if (!from.readableEnded || !from.writableFinished) to.destroy();
    });
  }
}
