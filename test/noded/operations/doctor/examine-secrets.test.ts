import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examineSecrets } from '../../../../noded/operations/doctor/examine-secrets.ts';

test('doctor names guests that cannot read their secrets, with the command that supplies them', () => {
  const well = { instance: 'web1', names: [] };
  assert.equal(examineSecrets([]).level, 'ok');
  assert.equal(examineSecrets([well]).level, 'ok');
  const { level, message, hint } = examineSecrets([well, { instance: 'web2', names: ['a', 'b'] }]);
  assert.equal(level, 'warning');
  assert.match(message, /: web2 \(a, b\)$/);
  assert.equal(hint, 'gnt-instance startup --os-parameters-secret a=@FILE,b=@FILE web2');
});
