import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeExit } from '../../../noded/vmm/judge-exit.ts';

const proper = { exitStatus: 0, signal: null };
const segfault = { exitStatus: null, signal: 'SIGSEGV' };

test('a power-off counts as the guest’s only when QEMU ended properly afterwards', () => {
  const shutdownReason = 'guest-shutdown';
  assert.equal(judgeExit({ end: proper, shutdownReason, isKilled: false }), 'guest-shutdown');
  assert.equal(judgeExit({ end: segfault, shutdownReason, isKilled: false }), 'crashed');
  assert.equal(judgeExit({ end: undefined, shutdownReason, isKilled: false }), 'guest-shutdown');
});

test('a process that ends without a word crashed, unless nobody can know', () => {
  const silent = { shutdownReason: undefined, isKilled: false };
  assert.equal(judgeExit({ ...silent, end: segfault }), 'crashed');
  assert.equal(judgeExit({ ...silent, end: { exitStatus: 1, signal: null } }), 'crashed');
  assert.equal(judgeExit({ ...silent, end: undefined }), 'unknown');
});

test('what we ended was ended by the host, however it ended', () => {
  const killed = { exitStatus: null, signal: 'SIGKILL' };
  for (const end of [proper, killed, undefined]) {
    for (const shutdownReason of [undefined, 'host-signal']) {
      assert.equal(judgeExit({ end, shutdownReason, isKilled: true }), 'host-request');
    }
  }
});

test('a guest that powered off before our signal came did it itself', () => {
  const shutdownReason = 'guest-shutdown';
  assert.equal(judgeExit({ end: proper, shutdownReason, isKilled: true }), 'guest-shutdown');
});

test('a reset, a panic and a word that QEMU never said are told apart', () => {
  const reasonOf = (shutdownReason: string): string =>
    judgeExit({ end: proper, shutdownReason, isKilled: false });
  assert.equal(reasonOf('guest-reset'), 'guest-reboot');
  assert.equal(reasonOf('guest-panic'), 'guest-panic');
  assert.equal(reasonOf('host-qmp-quit'), 'host-request');
  assert.equal(reasonOf('__proto__'), 'unknown');
  assert.equal(reasonOf('constructor'), 'unknown');
});
