import assert from 'node:assert/strict';
import { test } from 'node:test';
import { haltReasonOf, readHaltReason } from '../../../noded/vmm/guest-halt.ts';

test('an I/O error that stops the guest is a halt with its reason, and a reported error is not', () => {
  const event = (data: Record<string, unknown>, name = 'BLOCK_IO_ERROR') =>
    haltReasonOf({ name, data });
  assert.equal(event({ action: 'stop', nospace: true }), 'disk-full');
  assert.equal(event({ action: 'stop' }), 'disk-error');
  assert.equal(event({ action: 'report', nospace: true }), undefined);
  assert.equal(event({ action: 'stop', nospace: true }, 'SHUTDOWN'), undefined);
});

test('the halt reason is read from the state of QEMU and its disks', () => {
  const devices = [{ 'io-status': 'ok' }, {}, { 'io-status': 'nospace' }];
  assert.equal(readHaltReason({ status: 'io-error' }, devices), 'disk-full');
  assert.equal(readHaltReason({ status: 'io-error' }, [{ 'io-status': 'failed' }]), 'disk-error');
  assert.equal(readHaltReason({ status: 'running' }, devices), null);
  assert.equal(readHaltReason({ status: 'paused' }, devices), null);
});
