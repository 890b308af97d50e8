import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import {
  encodeJoinToken,
  makeJoinToken,
  openWithToken,
  parseJoinToken,
  sealForToken,
} from '#shared/store/join-token.ts';
import { makeClusterKey } from '#shared/store/sealed-store.ts';

const token = makeJoinToken({
  expiresAtMs: 1_700_000_600_000,
  cluster: '0b8c4f64-7f0e-4ad4-9c66-2c4d9d9b4f11',
  url: 'redis://:hunter22@store.example.com/3?replicas=1',
});
const isInvalid = (error: unknown): boolean =>
  isAppError(error, 'TOKEN_INVALID') && !JSON.stringify(error).includes('hunter22');

test('a token is one word, which says what it was made of', () => {
  const word = encodeJoinToken(token);
  assert.match(word, /^gntj1\.[A-Za-z0-9_-]+$/);
  assert.deepEqual(parseJoinToken(` ${word}\n`), { ...token, secret: Buffer.from(token.secret) });
});

test('one that lacks a character, or has another one anywhere, is none', () => {
  const word = encodeJoinToken(token);
  for (let at = 0; at < word.length; at += 1) {
    const other = word[at] === 'A' ? 'B' : 'A';
    const altered = word.slice(0, at) + other + word.slice(at + 1);
    const shorter = word.slice(0, at);
    for (const bad of [altered, shorter, word.slice(at + 1), `${word}${other}`])
      assert.throws(() => parseJoinToken(bad), isInvalid, bad);
  }
  for (const bad of [
    '',
    'gntj1.',
    'gntj2.AAAA',
    'x'.repeat(100_000),
    `${word}=`,
    `${word}\n${word}`,
  ])
    assert.throws(() => parseJoinToken(bad), isInvalid);
});

test('what the store has opens for the token alone, and for all that it says', () => {
  const key = makeClusterKey();
  const sealed = sealForToken(token, key);
  assert.deepEqual(Buffer.from(openWithToken(token, sealed)), Buffer.from(key));
  assert.ok(!sealed.includes(Buffer.from(key)));
  const others = [
    { ...token, expiresAtMs: token.expiresAtMs + 1 },
    { ...token, url: 'redis://elsewhere' },
    { ...token, cluster: '0b8c4f64-7f0e-4ad4-9c66-2c4d9d9b4f12' },
    { ...token, id: makeJoinToken(token).id },
    { ...token, secret: makeJoinToken(token).secret },
  ];
  for (const other of others) assert.throws(() => openWithToken(other, sealed), isInvalid);
  for (const at of [0, 30, sealed.length - 1]) {
    const altered = Buffer.from(sealed);
    altered[at] = (altered[at] ?? 0) ^ 1;
    assert.throws(() => openWithToken(token, altered), isInvalid);
  }
  assert.throws(() => openWithToken(token, sealed.subarray(0, 10)), isInvalid);
});
