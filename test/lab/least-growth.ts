/** Other processes make a measurement longer, never shorter. */
const ATTEMPTS = 3;

/**
 * Returns how many times longer a larger input takes. The ratio of the shortest measurements is
 * stable on a busy machine.
 * @param measure processes an input of this size and returns milliseconds
 */
export function leastGrowth(
  measure: (size: number) => number,
  small: number,
  large: number,
): number {
  measure(small); // compiles the code
  const shortest = (size: number): number =>
    Math.min(...Array.from({ length: ATTEMPTS }, () => measure(size)));
  return shortest(large) / shortest(small);
}
