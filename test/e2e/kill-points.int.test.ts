import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runPoints } from '../chaos/run-points.ts';
import { testSeed } from '../lab/test-seed.ts';

/** `npm run chaos -- --points` tries all of them. */
const LIMIT_MS = 30_000;

test('killed at some call of some operation, the daemon finds all as it has to be', async (t) => {
  const report = await runPoints({
    sample: { seed: testSeed(t), limitMs: LIMIT_MS },
    say: (line) => t.diagnostic(line),
  });
  assert.deepEqual(report.violations, []);
  assert.ok(report.points > 0, 'it was never killed');
});
