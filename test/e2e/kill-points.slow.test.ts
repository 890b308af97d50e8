import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runPoints } from '../chaos/run-points.ts';

/** `npm run chaos -- --points` runs all points; this test always runs the same sample. */
const LIMIT_MS = 30_000;
const SEED = 2;

test('killed at some call of some operation, the daemon finds all as it has to be', async (t) => {
  const report = await runPoints({
    hazard: 'kill',
    sample: { seed: SEED, limitMs: LIMIT_MS },
    say: (line) => t.diagnostic(line),
  });
  assert.deepEqual(report.violations, []);
  assert.ok(report.points > 0, 'it was never killed');
});
