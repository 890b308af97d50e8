import assert from 'node:assert/strict';
import { test } from 'node:test';
import { autostartKeys, hypervisorKeys, nicKeys } from '#shared/contract/parameter-keys.ts';
import { completeKeys } from '../../../cluster-cli/completion/complete-keys.ts';

const nics = { keys: nicKeys, syntax: 'N:key=value,…' };
const words = (...given: Parameters<typeof completeKeys>): readonly string[] =>
  completeKeys(...given).map(({ word }) => word);

test('the number of a NIC is offered before its keys', () => {
  assert.deepEqual(words(nics, '', ''), ['0:']);
  assert.deepEqual(words({ ...nics, syntax: 'add:key=value,…' }, 'a', ''), ['add:']);
});

test('keys are offered that are not given yet', () => {
  assert.deepEqual(words(nics, '0:m', ''), ['0:mode=', '0:mtu=', '0:mac=']);
  assert.deepEqual(words(nics, '0:mode=user,m', ''), ['0:mode=user,mtu=', '0:mode=user,mac=']);
  assert.deepEqual(words(nics, '0:mac=52:54:00:00:00:01,mt', '--net='), [
    '--net=0:mac=52:54:00:00:00:01,mtu=',
  ]);
});

test('the words of a key are offered behind its =', () => {
  assert.deepEqual(words(nics, '0:mode=', ''), ['0:mode=bridged', '0:mode=user']);
  const hypervisor = { keys: hypervisorKeys, syntax: '[kvm:]key=value,…' };
  assert.deepEqual(words(hypervisor, 'accel=k', ''), ['accel=kvm']);
  assert.deepEqual(words(hypervisor, 'kernel_path=', ''), []);
  assert.deepEqual(words(hypervisor, '__proto__=', ''), []);
  const autostart = { keys: autostartKeys, syntax: 'yes|no[,key=value,…]' };
  assert.deepEqual(words(autostart, 'yes,l', ''), ['yes,lost_secrets=']);
});
