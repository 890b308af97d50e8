import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runClusterChaos } from '../chaos/cluster/run-cluster.ts';
import { testSeed } from '../lab/test-seed.ts';

/** `npm run chaos -- --cluster --rounds 20 --seed N` runs the same test for hours. */
const FAULTS = 4;
/** One on each node. */
const GUESTS = 3;

test('a hundred jobs have one end each, whatever fails of three nodes, their store and their wire', async (t) => {
  const report = await runClusterChaos({
    ...{ seed: testSeed(t), rounds: 1, faults: FAULTS, guests: GUESTS },
    say: (line) => t.diagnostic(line),
  });
  assert.deepEqual(report.problems, []);
  assert.ok(report.succeeded > 0);
});
