import type { Duplex } from 'node:stream';

/**
 * Passes bytes in both directions. The end of one direction leaves the other one open; a broken
 * stream destroys the other one.
 */
export function joinStreams(left: Duplex, right: Duplex): void {
  for (const [from, to] of [
    [left, right],
    [right, left],
  ] as const) {
    from.pipe(to);
    from.on('error', () => to.destroy());
    // After an early close the other side must neither wait nor continue to send.
    from.on('close', () => {
      if (!from.readableEnded || !from.writableFinished) to.destroy();
    });
  }
}
