import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examineStoreReach } from '../../../../noded/operations/doctor/examine-store-reach.ts';

async function examine(
  description: string,
  given: { networks?: string[]; confinesAll?: boolean; open?: string[] } = {},
): Promise<string> {
  const { networks = [], confinesAll = false, open = [] } = given;
  const findings = await examineStoreReach({
    description,
    resolve: (host) => Promise.resolve([host === 'redis.lan' ? '10.1.0.5' : host]),
    readPolicy: () => Promise.resolve({ confinesAll, networks }),
    listOpenGuests: () => Promise.resolve(open),
  });
  return findings.map(({ level, message }) => `${level} ${message}`).join('\n');
}

test('names the guests that reach a store in a private network', async () => {
  for (const store of ['redis://redis.lan:6379/1', 'sentinel://192.0.0.9:26379,10.1.0.5/main'])
    assert.match(await examine(store, { open: ['web'] }), /^warning .*web$/, store);
  assert.match(await examine('redis://redis.lan'), /^ok/);
  assert.match(await examine('redis://redis.lan', { open: ['web'], confinesAll: true }), /^ok/);
});

test('warns of a store in a guest network or with a public address', async () => {
  assert.match(await examine('redis://10.1.0.5:6379', { networks: ['10.1.0.0/16'] }), /^warning/);
  assert.match(await examine('rediss://[2a00:1450::5]:6379'), /^warning .*2a00:1450::5/);
});

test('says nothing of a store without an address', async () => {
  for (const store of ['sqlite /var/lib/gnt/store.sqlite', 'unix:/run/redis.sock'])
    assert.equal(await examine(store, { open: ['web'] }), '');
});

test('a store of this host is behind the rules for guests', async () => {
  assert.match(await examine('redis://127.0.0.1:6379', { open: ['web'] }), /^ok/);
});
