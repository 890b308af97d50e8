import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  CredentialCache,
  ExchangeFailure,
} from '../../../../noded/instances/identity/credential-cache.ts';

const MINUTE_MS = 60_000;

/** A cache, a clock, and exchanges that the test settles. */
function lab(lifeMs = 60 * MINUTE_MS) {
  const time = { wallMs: 1e12, monotonicMs: 0 };
  const cache = new CredentialCache<{ readonly expiresAtMs: number; readonly id: number }>({
    now: () => time.wallMs,
    monotonicMs: () => time.monotonicMs,
  });
  let count = 0;
  const make = async () => ({ id: count++, expiresAtMs: time.wallMs + lifeMs });
  const idOf = async (key = 'a', source = 's', exchange = make): Promise<number> =>
    (await cache.get(key, source, exchange)).id;
  const pass = (ms: number): void => void ((time.wallMs += ms), (time.monotonicMs += ms));
  return { cache, idOf, pass, time };
}
const fail = (): Promise<never> => Promise.reject(new ExchangeFailure('down'));

for (const [lifeMin, freshMin] of [
  [60, 40],
  [15, 7.5],
  [720, 700],
] as const)
  test(`credentials of ${lifeMin} minutes are kept for ${freshMin} minutes`, async () => {
    const { idOf, pass } = lab(lifeMin * MINUTE_MS);
    assert.equal(await idOf(), 0);
    pass(freshMin * MINUTE_MS - 1);
    assert.equal(await idOf(), 0);
    pass(1);
    assert.equal(await idOf(), 1);
  });

test('while exchanges fail, credentials are served until a minute before their end', async () => {
  const { idOf, pass } = lab();
  await idOf();
  pass(59 * MINUTE_MS);
  assert.equal(await idOf('a', 's', fail), 0);
  pass(1);
  await assert.rejects(idOf('a', 's', fail), /down/);
});

test('a suspended host does not prolong credentials, whose end the wall clock shows', async () => {
  const { idOf, time } = lab();
  await idOf();
  time.wallMs += 59 * MINUTE_MS + 1;
  await assert.rejects(idOf('a', 's', fail), /down/);
});

test('a clock that was set back does not prolong credentials either', async () => {
  const { idOf, time } = lab();
  await idOf();
  time.wallMs -= 30 * MINUTE_MS;
  time.monotonicMs += 59 * MINUTE_MS + 1;
  await assert.rejects(idOf('a', 's', fail), /down/);
});

test('a slow exchange shortens the use of its credentials', async () => {
  const { idOf, pass } = lab();
  const exchange = async () => {
    const value = { id: 7, expiresAtMs: 1e12 + 60 * MINUTE_MS };
    pass(41 * MINUTE_MS);
    return Promise.resolve(value);
  };
  assert.equal(await idOf('a', 's', exchange), 7);
  assert.equal(await idOf(), 0, 'renewed at once');
});

test('a failure is repeated for ten seconds, for its source alone', async () => {
  const { idOf, pass } = lab();
  await assert.rejects(idOf('a', 's', fail), /down/);
  pass(9999);
  await assert.rejects(idOf(), /down/);
  assert.equal(await idOf('a', 'other'), 0);
  assert.equal(await idOf('b'), 1);
  pass(1);
  await assert.rejects(idOf('c', 's', fail), /down/);
});

test('an exchange of a former source does not replace newer credentials', async () => {
  const { cache, idOf } = lab();
  const { promise, resolve } = Promise.withResolvers<{ id: number; expiresAtMs: number }>();
  const former = cache.get('a', 'former', () => promise);
  assert.equal(await idOf('a', 'newer'), 0);
  resolve({ id: 99, expiresAtMs: 2e12 });
  assert.equal((await former).id, 99);
  assert.equal(await idOf('a', 'newer'), 0);
});

test('256 exchanges run at once, and a further one fails until one has ended', async () => {
  const { cache, idOf } = lab();
  const { promise, resolve } = Promise.withResolvers<{ id: number; expiresAtMs: number }>();
  const waiting = Array.from({ length: 256 }, (_, index) =>
    cache.get(`w${index}`, 's', () => promise),
  );
  await assert.rejects(idOf('late'), /too many exchanges/);
  resolve({ id: 1, expiresAtMs: 1e12 + 60 * MINUTE_MS });
  await Promise.all(waiting);
  assert.equal(await idOf('late'), 0);
});

test('8192 instances have credentials, and the oldest are dropped first', async () => {
  const { idOf } = lab();
  for (let index = 0; index <= 8192; index++) await idOf(`i${index}`);
  assert.equal(await idOf('i1'), 1);
  assert.equal(await idOf('i0'), 8193);
});
