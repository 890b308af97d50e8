import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testSeed } from '../lab/test-seed.ts';
import { runChaos } from '../chaos/run-chaos.ts';

/** `npm run chaos -- --installs 200 --seed N` runs the same test for hours. */
const INSTALLS = 8;
const LIMIT_MS = 150_000;

test('leaves nothing half done, whatever is killed at whatever moment of an install', async (t) => {
  const report = await runChaos({
    installs: INSTALLS,
    seed: testSeed(t),
    limitMs: LIMIT_MS,
    say: (line) => t.diagnostic(line),
  });
  assert.deepEqual(report.problems, []);
  assert.ok(report.installed > 0);
});
