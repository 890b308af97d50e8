import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TokenCache } from '../../../metad/channel/token-cache.ts';

function clock(): { wallMs: number; monoMs: number; now(): number; monotonicMs(): number } {
  return {
    wallMs: 1_000_000,
    monoMs: 0,
    now() {
      return this.wallMs;
    },
    monotonicMs() {
      return this.monoMs;
    },
  };
}

test('a token is used again until a third of its life remains', () => {
  const time = clock();
  const cache = new TokenCache(time);
  cache.expect('a', 900)('A');
  const pass = (ms: number): void => void ((time.wallMs += ms), (time.monoMs += ms));
  pass(599_999);
  assert.equal(cache.find('a'), 'A');
  assert.equal(cache.find('b'), undefined);
  pass(1);
  assert.equal(cache.find('a'), undefined);
});

for (const [name, wallMs, monoMs] of [
  ['set forward', 3_600_000, 1000],
  ['set back', -3_600_000, 1000],
  ['ahead after a suspended host', 700_000, 10],
] as const) {
  test(`no token is used again when the wall clock was ${name}`, () => {
    const time = clock();
    const cache = new TokenCache(time);
    cache.expect('a', 900)('A');
    time.wallMs += wallMs;
    time.monoMs += monoMs;
    assert.equal(cache.find('a'), undefined);
  });
}

test('an instance keeps 16 tokens, and drops a token that was requested before a change', () => {
  const cache = new TokenCache(clock());
  for (let index = 0; index < 10_000; index++) cache.expect(`${index}`, 900)(`T${index}`);
  assert.equal(cache.find('9983'), undefined);
  assert.equal(cache.find('9984'), 'T9984');
  const keep = cache.expect('late', 900);
  cache.drop();
  keep('L');
  assert.equal(cache.find('late'), undefined);
  assert.equal(cache.find('9999'), undefined);
});

test('new tokens are limited to 32 at once and then one in two seconds', () => {
  const time = clock();
  const cache = new TokenCache(time);
  const waits = Array.from({ length: 40 }, () => cache.takeIssue());
  assert.equal(waits.filter((wait) => wait === 0).length, 32);
  cache.drop();
  assert.ok(cache.takeIssue() > 0, 'a changed view does not help');
  time.monoMs += 2000;
  assert.equal(cache.takeIssue(), 0);
});
