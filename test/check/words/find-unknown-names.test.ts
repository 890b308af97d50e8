import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findUndocumentedMetrics, findUnknownNames } from './find-unknown-names.ts';

const REFERENCE = ['docs/reference/metrics.md', '- `gnt_jobs_ended_total`: Jobs.\n'] as const;

test('a metric of the code without an entry is found', () => {
  const code =
    "import { Gauge } from 'prom-client'; gauge('gnt_new_bytes'); x('gnt_jobs_ended_total')";
  assert.deepEqual(findUndocumentedMetrics(new Map([REFERENCE, ['noded/m.ts', code]])), [
    'noded/m.ts: the metric gnt_new_bytes has no entry',
  ]);
});

test('an error code or metric of a document that does not exist is found', () => {
  const text = '`error[USAGE]` `error[GONE]` gnt_jobs_ended_total gnt_gone_total';
  assert.deepEqual(findUnknownNames(new Map([REFERENCE, ['a.md', text]])), [
    'a.md: the error code GONE does not exist',
    'a.md: the metric gnt_gone_total does not exist',
  ]);
});
