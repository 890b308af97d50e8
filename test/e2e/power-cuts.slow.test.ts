import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runPoints } from '../chaos/run-points.ts';

/**
 * `npm run chaos -- --power` and `--full` run all points; this test always runs the same sample.
 */
const SEED = 5;

test('what was told outlasts a power cut, and the node starts without what was not synced', async (t) => {
  const report = await runPoints({
    hazard: 'power-cut',
    sample: { seed: SEED, limitMs: 20_000 },
    say: (line) => t.diagnostic(line),
  });
  assert.deepEqual(report.violations, []);
  assert.ok(report.points > 0, 'it was never cut');
});

test('an operation whose disk is full at some call is done, or fails by that name', async (t) => {
  const report = await runPoints({
    hazard: 'full-disk',
    sample: { seed: SEED, limitMs: 15_000 },
    say: (line) => t.diagnostic(line),
  });
  assert.deepEqual(report.violations, []);
  assert.ok(report.points > 0, 'it was never full');
});
