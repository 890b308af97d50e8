import { randomInt } from 'node:crypto';
import type { TestContext } from 'node:test';

/**
 * The seed of generated test input: `GNT_TEST_SEED`, or another one each time. It is printed with
 * the test, so that a failure can be seen again with `GNT_TEST_SEED=N node --test FILE`.
 */
export function testSeed(t: TestContext): number {
  const given = process.env['GNT_TEST_SEED'];
  const seed = given === undefined ? randomInt(2 ** 31) : Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error(`GNT_TEST_SEED is no whole number: '${given}'`);
  t.diagnostic(`GNT_TEST_SEED=${seed}`);
  return seed;
}
