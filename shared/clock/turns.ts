import { setImmediate as turn } from 'node:timers/promises';

/** Whoever else has something to do waits for so long, and for one piece of each work more. */
const LONGEST_MS = 3;

/** Of all work in pieces together, as the event loop is one: when others had their turn last. */
const others: { sinceMs: number; turn?: Promise<void> | undefined } = { sinceMs: 0 };

/**
 * For work in pieces whose size nobody knows beforehand: awaited between two of them, it gives
 * others their turn when the pieces of all such work took long enough together. However many go on
 * at once, who waits for something else waits no longer.
 */
export async function othersTurn(): Promise<void> {
  if (performance.now() - others.sinceMs < LONGEST_MS) return;
  others.turn ??= turn().then(() => {
    others.turn = undefined;
    others.sinceMs = performance.now();
  });
  await others.turn;
}
