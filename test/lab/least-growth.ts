/** Time that others take from a measurement makes it longer, never shorter. */
const ATTEMPTS = 3;

/**
 * How many times as long something takes for a larger input: a ratio of the shortest of a few
 * measurements, which holds on a busy machine too.
 * @param measure does it for an input of this size, and tells the milliseconds that it took
 */
export function leastGrowth(
  measure: (size: number) => number,
  small: number,
  large: number,
): number {
  measure(small); // Code that ran before is compiled.
  const shortest = (size: number): number =>
    Math.min(...Array.from({ length: ATTEMPTS }, () => measure(size)));
  return shortest(large) / shortest(small);
}
