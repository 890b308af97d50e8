import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tally } from '../../../metad/control/metrics.ts';

test('counts are kept apart by group and status', () => {
  const tally = new Tally(2, [1]);
  tally.add(0, 200, 0);
  tally.add(0, 200, 0);
  tally.add(1, 404, 0);
  assert.deepEqual(
    [...tally.counts()],
    [
      { group: 0, status: 200, count: 2 },
      { group: 1, status: 404, count: 1 },
    ],
  );
});

test('buckets are cumulative, and a value on a bound is within it', () => {
  const tally = new Tally(1, [0.5, 2]);
  for (const tookS of [0.25, 0.5, 1, 4]) tally.add(0, 200, tookS);
  assert.equal(
    tally.formatLatency('x', 'help'),
    `# HELP x help
# TYPE x histogram
x_bucket{le="0.5"} 2
x_bucket{le="2"} 3
x_bucket{le="+Inf"} 4
x_sum 5.75
x_count 4
`,
  );
});
