import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type LifecycleRecord, NO_PROGRESS, SILENT_AGENT } from '#shared/contract/lifecycle.ts';
import { explainSilence } from '../../../../noded/instances/run-lists/lifecycle-entry.ts';
import { beginRun } from '../../../../noded/instances/run-lists/plan-lifecycle.ts';

const STARTED_AT_MS = 1_000_000;
const LATER_MS = STARTED_AT_MS + 300_000;
const RUN = '5b1c7a52-6a0f-4b39-9d27-0f6b7b1b0c11';
const silent = beginRun(RUN, STARTED_AT_MS, { nowMs: STARTED_AT_MS, bootTimeoutS: null });
const reasonOf = (record: LifecycleRecord, nowMs: number): string | null =>
  explainSilence(record, nowMs).reason;

test('an agent that never reported is named as the reason after five minutes', () => {
  assert.equal(reasonOf(silent, LATER_MS - 1), null);
  assert.equal(reasonOf(silent, LATER_MS), SILENT_AGENT);
});

test('a guest that reported, or whose run has not begun, has no silent agent', () => {
  const progress = { ...NO_PROGRESS, boot: RUN, number: 1 };
  assert.equal(reasonOf({ ...silent, progress }, LATER_MS), null);
  assert.equal(reasonOf({ ...silent, runStartedAtMs: 0 }, LATER_MS), null);
  const failed = { ...silent, state: 'failed', reason: 'too late' } as const;
  assert.equal(reasonOf(failed, LATER_MS), 'too late');
});
