import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BootEvent, BootReport } from '#shared/contract/boot-report.ts';
import {
  hearBootEvent,
  hearBootResult,
  judgeEvents,
} from '../../../../noded/instances/reports/boot-verdict.ts';

/** Parses an event such as `modules-final/config-x finish FAIL`. */
function event(text: string): BootEvent {
  const [name = '', phase = '', result] = text.split(' ');
  const [stage = '', module] = name.split('/');
  return {
    stage: stage as BootEvent['stage'],
    module: module ?? null,
    phase: phase as BootEvent['phase'],
    result: (result ?? null) as BootEvent['result'],
    description: 'running',
  };
}

function hear(...texts: readonly string[]): BootReport {
  const report = texts.reduce<BootReport | null>(
    (before, text) => hearBootEvent(before, event(text)),
    null,
  );
  return report ?? assert.fail('nothing was said');
}

const GOOD = [
  'init-network finish SUCCESS',
  'modules-config start',
  'modules-config/config-locale finish SUCCESS',
  'modules-final start',
];

test('the stage is that of the last event, and nothing is over before the last stage', () => {
  const { status, stage } = hear(...GOOD);
  assert.deepEqual([status, stage], ['running', 'modules-final']);
});

test('events alone give a verdict when they are over', () => {
  assert.equal(judgeEvents(hear(...GOOD)).status, 'done');
  const warned = judgeEvents(hear(...GOOD, 'modules-final/config-a finish WARN'));
  assert.deepEqual([warned.status, warned.recoverableErrors.length], ['degraded', 1]);
  const failed = judgeEvents(hear(...GOOD, 'modules-final/config-scripts-user finish FAIL'));
  assert.equal(failed.status, 'error');
  assert.deepEqual(failed.errors, ['modules-final/config-scripts-user: running']);
});

test('cloud-init’s own account counts more, and what comes after it changes nothing', () => {
  const result = {
    stage: null,
    errors: ['disk_setup: no such device'],
    recoverableErrors: [],
    stages: [],
  };
  const verdict = hearBootResult(result);
  assert.equal(verdict.status, 'error');
  assert.deepEqual(hearBootEvent(verdict, event('modules-final finish SUCCESS')), verdict);
  const warned = hearBootResult({
    stage: null,
    errors: [],
    recoverableErrors: ['WARNING: x'],
    stages: [],
  });
  assert.equal(warned.status, 'degraded');
});

test('an account of a boot that goes on is no verdict, and what it says of errors counts', () => {
  const soFar = { errors: ['x'], recoverableErrors: [], stages: [] };
  const report = hearBootResult({ ...soFar, stage: 'modules-final' });
  assert.deepEqual(report, { ...soFar, stage: 'modules-final', status: 'running' });
  assert.equal(judgeEvents(report).status, 'error');
});

test('a boot that begins anew, after a verdict or without one, begins with nothing', () => {
  const verdict = hearBootResult({ stage: null, errors: ['x'], recoverableErrors: [], stages: [] });
  assert.deepEqual(hearBootEvent(verdict, event('init-network/activate-datasource start')), {
    ...{ status: 'running', stage: 'init-network' },
    ...{ errors: [], recoverableErrors: [], stages: [] },
  });
  const again = hear(...GOOD, 'modules-config/config-a finish FAIL', 'init-network start');
  assert.deepEqual([again.stage, again.errors], ['init-network', []]);
});

test('a guest that fails ten thousand times is heard twenty times', () => {
  const lies = Array.from({ length: 10_000 }, () => 'modules-final/config-a finish FAIL');
  assert.equal(hear(...lies).errors.length, 20);
});
