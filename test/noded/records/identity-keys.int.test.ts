import assert from 'node:assert/strict';
import { X509Certificate, createPrivateKey } from 'node:crypto';
import { test } from 'node:test';
import { createClusterRepository } from '../../../noded/records/cluster-repository.ts';
import { chooseKeys, IDENTITY, type KeyGeneration } from '../../../noded/records/identity-keys.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openStore } from './repository-lab.ts';

const HOUR_MS = 3_600_000;

function generation(signsFromMs: number): KeyGeneration {
  return { createdAtMs: 0, signsFromMs, es256: '', rs256: '', certificate: '' };
}

test('a new key signs after the overlap, and the former one is published while its tokens live', () => {
  const [newer, former] = [generation(100 * HOUR_MS), generation(0)];
  const at = (nowMs: number): unknown => {
    const { signing, published } = chooseKeys([newer, former], nowMs);
    return [signing?.signsFromMs, published.length];
  };
  assert.deepEqual(at(99 * HOUR_MS), [0, 2], 'verifiers learn the new one');
  assert.deepEqual(at(100 * HOUR_MS), [100 * HOUR_MS, 2]);
  assert.deepEqual(at(100 * HOUR_MS + 900_000), [100 * HOUR_MS, 2], 'a last token is valid');
  assert.deepEqual(at(101 * HOUR_MS), [100 * HOUR_MS, 1]);
  assert.deepEqual(at(99 * HOUR_MS), [0, 2], 'a clock that was set back');
  assert.equal(chooseKeys([newer], 0).signing, newer, 'a clock before all keys');
  assert.equal(chooseKeys([], 0).signing, undefined);
});

test('the first keys sign at once, are made once, and have a certificate', async (t) => {
  const store = openStore(t);
  const clusters = createClusterRepository(store, new ManualClock());
  assert.deepEqual(await clusters.loadIdentityKeys(), []);
  await Promise.all([clusters.ensureIdentityKeys(), clusters.ensureIdentityKeys()]);
  const [first, ...others] = await clusters.loadIdentityKeys();
  assert.equal(others.length, 0);
  assert.equal(first?.signsFromMs, 0);
  const certificate = new X509Certificate(first?.certificate ?? '');
  assert.ok(certificate.checkPrivateKey(createPrivateKey(first?.rs256 ?? '')));
  await clusters.ensureIdentityKeys();
  assert.deepEqual(await clusters.loadIdentityKeys(), [first]);
});

test('a renewal keeps the former keys for the overlap, and none without an overlap', async (t) => {
  const store = openStore(t);
  const clock = new ManualClock();
  const clusters = createClusterRepository(store, clock);
  await clusters.ensureIdentityKeys();
  const [first] = await clusters.loadIdentityKeys();
  const both = await clusters.renewIdentityKeys(HOUR_MS);
  assert.deepEqual([both.length, both[1]], [2, first]);
  assert.equal(both[0]?.signsFromMs, clock.now() + HOUR_MS);
  const alone = await clusters.renewIdentityKeys(0);
  assert.equal(alone.length, 1);
  assert.notEqual(alone[0]?.es256, both[0]?.es256);
  assert.equal(alone[0]?.signsFromMs, 0);
  for (let count = 1; count < 8; count++) await clusters.renewIdentityKeys(HOUR_MS);
  await assert.rejects(clusters.renewIdentityKeys(HOUR_MS), { code: 'CONFLICT' });
});

test('a renewal replaces keys that are lost or cannot be read', async (t) => {
  const store = openStore(t);
  const clusters = createClusterRepository(store, new ManualClock());
  assert.equal((await clusters.renewIdentityKeys(HOUR_MS))[0]?.signsFromMs, 0);
  const spoilt = { schema: 1, generations: 'gone' };
  await store.commit([{ collection: IDENTITY, id: 'keys', expected: 'any', value: spoilt }]);
  await assert.rejects(clusters.loadIdentityKeys(), { code: 'RECORD_UNREADABLE' });
  const [renewed] = await clusters.renewIdentityKeys(HOUR_MS);
  assert.equal(renewed?.signsFromMs, 0, 'nothing signs meanwhile');
  assert.deepEqual(await clusters.loadIdentityKeys(), [renewed]);
});
