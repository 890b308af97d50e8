import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeExit } from '../../../noded/vmm/judge-exit.ts';

const proper = { exitStatus: 0, signal: null };
const segfault = { exitStatus: null, signal: 'SIGSEGV' };

test('a power-off by the guest is a shutdown unless QEMU crashes afterwards', () => {
  const shutdownReason = 'guest-shutdown';
  assert.equal(judgeExit({ end: proper, shutdownReason, isKilled: false }), 'guest-shutdown');
  assert.equal(judgeExit({ end: segfault, shutdownReason, isKilled: false }), 'crashed');
  assert.equal(judgeExit({ end: undefined, shutdownReason, isKilled: false }), 'guest-shutdown');
});

test('a process that ends without a shutdown event is crashed, or unknown without an exit status', () => {
  const silent = { shutdownReason: undefined, isKilled: false };
  assert.equal(judgeExit({ ...silent, end: segfault }), 'crashed');
  assert.equal(judgeExit({ ...silent, end: { exitStatus: 1, signal: null } }), 'crashed');
  assert.equal(judgeExit({ ...silent, end: undefined }), 'unknown');
});

test('a killed process ended by host request, with any exit status', () => {
  const killed = { exitStatus: null, signal: 'SIGKILL' };
  for (const end of [proper, killed, undefined]) {
    for (const shutdownReason of [undefined, 'host-signal']) {
      assert.equal(judgeExit({ end, shutdownReason, isKilled: true }), 'host-request');
    }
  }
});

test('a guest that powers off before it is killed ended by guest shutdown', () => {
  const shutdownReason = 'guest-shutdown';
  assert.equal(judgeExit({ end: proper, shutdownReason, isKilled: true }), 'guest-shutdown');
});

test('a reset, a panic, a quit and an unknown shutdown reason have different results', () => {
  const reasonOf = (shutdownReason: string): string =>
    judgeExit({ end: proper, shutdownReason, isKilled: false });
  assert.equal(reasonOf('guest-reset'), 'guest-reboot');
  assert.equal(reasonOf('guest-panic'), 'guest-panic');
  assert.equal(reasonOf('host-qmp-quit'), 'host-request');
  assert.equal(reasonOf('__proto__'), 'unknown');
  assert.equal(reasonOf('constructor'), 'unknown');
});
