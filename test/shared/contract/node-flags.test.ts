import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  changeNodeFlags,
  NO_FLAGS,
  requireOnline,
  requireTakesNew,
} from '#shared/contract/node-flags.ts';
import { nodeRole } from '#shared/contract/node-role.ts';
import { opcode } from '#shared/contract/opcode.ts';
import { isAppError } from '#shared/errors/app-error.ts';

const drained = { drained: true, offline: false };
const offline = { drained: false, offline: true };

test('a node has one role: what is set takes the other one back, what is taken back leaves it', () => {
  assert.deepEqual(changeNodeFlags(NO_FLAGS, { drained: true }), drained);
  assert.deepEqual(changeNodeFlags(drained, { offline: true }), offline);
  assert.deepEqual(changeNodeFlags(offline, { drained: true }), drained);
  assert.deepEqual(changeNodeFlags(offline, { drained: false }), offline);
  assert.deepEqual(changeNodeFlags(offline, { offline: false }), NO_FLAGS);
  assert.deepEqual([NO_FLAGS, drained, offline].map(nodeRole), ['M', 'D', 'O']);
});

test('a drained node works and gets nothing new, one that is offline does neither', () => {
  requireOnline('node1', drained);
  requireTakesNew('node1', NO_FLAGS);
  const refusal =
    (code: 'NODE_DRAINED' | 'NODE_OFFLINE') =>
    (error: unknown): boolean =>
      isAppError(error, code) && error.message.includes("'node1'");
  assert.throws(() => requireTakesNew('node1', drained), refusal('NODE_DRAINED'));
  assert.throws(() => requireTakesNew('node1', offline), refusal('NODE_OFFLINE'));
  assert.throws(() => requireOnline('node1', offline), refusal('NODE_OFFLINE'));
});

test('both at once, and neither, are refused before anything is sent', () => {
  const given = (flags: object): boolean =>
    opcode.safeParse({ opcode: 'NODE_SET_PARAMS', name: 'node1', ...flags }).success;
  assert.ok(given({ drained: true, offline: false }));
  assert.ok(!given({ drained: true, offline: true }));
  assert.ok(!given({}));
});
