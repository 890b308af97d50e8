import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkBoots, examineBoots } from '../../../../noded/operations/doctor/examine-boots.ts';

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

test('the doctor looks at running guests that boot from their channel', async () => {
  const machines = ['web1', 'web2'].map((instanceName) => ({
    ...{ instanceName, machine: { uuid: instanceName } },
  }));
  const state = (uuid: string) =>
    uuid === 'web1' ? null : { name: 'live', failure: null, lost: [{ path: 'x', secrets: [] }] };
  const facts = { guests: { keeper: { list: () => machines }, bootViews: { state } } };
  const finding = await checkBoots(facts as unknown as Parameters<typeof checkBoots>[0]);
  assert.match(JSON.stringify(finding), /boot files: web2 \(live\)/);
});
