import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics } from '../../../../metad/control/metrics.ts';
import { createNodeMetrics } from '../../../../noded/wiring/node-metrics.ts';
import {
  parseMetrics,
  type Reading,
  ratesOf,
  readMetrics,
} from '../../../../web/pages/charts/read-metrics.ts';

test('samples have names, labels and values', () => {
  const text = '# HELP a b\n# TYPE a counter\na{x="1,\\"}",y=""} 2\nb 1e+3\n\nnot a sample\n';
  assert.deepEqual(parseMetrics(text), [
    { name: 'a', labels: { x: '1,\\"}', y: '' }, value: 2 },
    { name: 'b', labels: {}, value: 1000 },
  ]);
});

test('the numbers of the charts are in the metrics of both daemons', async () => {
  const node = createNodeMetrics(0);
  node.jobEnded({ opcode: 'INSTANCE_CREATE', status: 'error' });
  node.jobEnded({ opcode: 'INSTANCE_CREATE', status: 'success' });
  const guests = createMetrics(() => []);
  guests.finished('/ganeti/latest/meta_data.json', 200, 1);
  guests.refused('rate');
  const reading = readMetrics(`${await node.render()}${await guests.render()}`, 7);
  assert.equal(reading.atMs, 7);
  assert.equal(reading.failedJobs, 1);
  assert.equal(reading.requests, 1);
  assert.equal(reading.refused, 1);
  assert.ok(reading.nodedCpuS > 0);
  assert.ok(reading.metadCpuS > 0);
});

test('a rate is per second, and unknown after a restart', () => {
  const at = (atMs: number, requests: number): Reading => ({ ...readMetrics('', atMs), requests });
  const readings = [at(0, 10), at(2000, 30), at(3000, 5), at(3000, 6), at(4000, 7)];
  assert.deepEqual(
    ratesOf(readings, ({ requests }) => requests),
    [null, 10, null, null, 1],
  );
});
