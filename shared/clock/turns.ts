import { setImmediate as turn } from 'node:timers/promises';

/** Whoever else has something to do waits for so long, and for one piece of work more. */
const LONGEST_MS = 5;

/**
 * For work in pieces whose size nobody knows beforehand: awaited between two of them, it gives
 * others their turn when the ones before took long enough. Others that work meanwhile count too: a
 * turn too many costs little.
 */
export function createTurns(): () => Promise<void> {
  let sinceMs = performance.now();
  return async () => {
    if (performance.now() - sinceMs < LONGEST_MS) return;
    await turn();
    sinceMs = performance.now();
  };
}
