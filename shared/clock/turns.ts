import { setImmediate as turn } from 'node:timers/promises';

/** Longest delay of other work, plus one piece of each chunked work. */
const LONGEST_MS = 3;

/** The last turn of other work, common to all chunked work, as the event loop is. */
const others: { sinceMs: number; turn?: Promise<void> | undefined } = { sinceMs: 0 };

/**
 * Lets other work run, if all chunked work together took long enough. Await it between two pieces
 * of work of unknown size. The delay of other work does not grow with the number of such works.
 */
export async function othersTurn(): Promise<void> {
  if (performance.now() - others.sinceMs < LONGEST_MS) return;
  others.turn ??= turn().then(() => {
    others.turn = undefined;
    others.sinceMs = performance.now();
  });
  await others.turn;
}
