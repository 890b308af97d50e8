import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examineNetworks } from '../../../../noded/operations/doctor/examine-networks.ts';

const HOUR_MS = 60 * 60_000;

test('what is wrong with a network is an error with its name', () => {
  const failures = new Map([['lan', 'dnsmasq is not installed']]);
  const [finding] = examineNetworks({ failures, repairs: [] }, 0);
  assert.equal(finding?.level, 'error');
  assert.match(finding.message, /network 'lan' .*: dnsmasq is not installed/);
});

test('what was put back is a warning for an hour', () => {
  const report = { failures: new Map(), repairs: [{ atMs: 1000, what: 'the rules were gone' }] };
  const [soon] = examineNetworks(report, HOUR_MS);
  assert.equal(soon?.level, 'warning');
  assert.match(soon.message, /the rules were gone \(last at 1970-01-01T00:00:01\.000Z\)/);
  assert.equal(examineNetworks(report, HOUR_MS + 1000)[0]?.level, 'ok');
});
