import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SessionTokens, parseTokenTtl } from '../../../metad/channel/session-tokens.ts';

test('a token is valid until its time is over', () => {
  let nowMs = 1000;
  const tokens = new SessionTokens(() => nowMs);
  const token = tokens.create(2);
  nowMs = 2999;
  assert.equal(tokens.isValid(token), true);
  nowMs = 3000;
  assert.equal(tokens.isValid(token), false);
});

test('a token of another instance is not valid', () => {
  const token = new SessionTokens(() => 0).create(60);
  assert.equal(new SessionTokens(() => 0).isValid(token), false);
});

test('a token with any character changed is not valid', () => {
  const tokens = new SessionTokens(() => 0);
  const token = tokens.create(60);
  for (let index = 0; index < token.length - 1; index++) {
    const other = token[index] === 'A' ? 'B' : 'A';
    assert.equal(tokens.isValid(token.slice(0, index) + other + token.slice(index + 1)), false);
  }
  for (const text of ['', 'x', `${token}x`, token.slice(1), '€'.repeat(token.length)]) {
    assert.equal(tokens.isValid(text), false);
  }
});

test('a TTL outside of 1 to 21600 seconds is refused', () => {
  assert.equal(parseTokenTtl('1'), 1);
  assert.equal(parseTokenTtl('21600'), 21_600);
  for (const text of [undefined, '', '0', '21601', '-1', '1.5', '1e3', ' 60', '99999999']) {
    assert.equal(parseTokenTtl(text), null);
  }
});
