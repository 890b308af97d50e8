import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examineBoots } from '../../../../noded/operations/doctor/examine-boots.ts';

test('a guest that boots by what it was given before is named, and one that is as set is not', () => {
  const well = { instance: 'web1', bootEnv: { name: 'live', failure: null, lost: [] } };
  assert.equal(examineBoots([]).level, 'ok');
  assert.equal(examineBoots([well]).level, 'ok');
  const failure = { code: 'BOOTENV_RENDER', message: 'seed:1:1' };
  const lost = [{ path: 'machines/x/seed', secrets: ['key'] }];
  for (const part of [{ failure }, { lost }]) {
    const stale = { instance: 'web2', bootEnv: { ...well.bootEnv, ...part } };
    const { level, message, hint } = examineBoots([well, stale]);
    assert.equal(level, 'warning');
    assert.match(message, /: web2 \(live\)$/);
    assert.match(hint ?? '', /gnt-instance info web2/);
  }
});
