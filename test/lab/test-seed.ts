import { randomInt } from 'node:crypto';
import type { TestContext } from 'node:test';

/**
 * Returns the seed of generated input: `GNT_TEST_SEED`, or a random one. The test prints it, so
 * that `GNT_TEST_SEED=N node --test FILE` repeats a failure.
 */
export function testSeed(t: TestContext): number {
  const given = process.env['GNT_TEST_SEED'];
  const seed = given === undefined ? randomInt(2 ** 31) : Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error(`GNT_TEST_SEED is no whole number: '${given}'`);
  t.diagnostic(`GNT_TEST_SEED=${seed}`);
  return seed;
}
