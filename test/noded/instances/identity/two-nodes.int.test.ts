import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Redis } from 'ioredis';
import { systemClock } from '#shared/clock/clock.ts';
import type { IdentitySettings } from '#shared/contract/identity.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import { createSealedStore, makeClusterKey, ringOf } from '#shared/store/sealed-store.ts';
import { followCluster } from '../../../../noded/cluster/membership/follow-cluster.ts';
import { type IdentityLab, openIdentityLab, verifyByPython } from '../../../lab/identity-lab.ts';
import { exampleView } from '../../../metad/support/view-fixture.ts';
import { instanceRecord } from '../../support/records.ts';
import { type RedisServer, startRedis } from '../../support/redis-server.ts';

/** Two signers with sealed stores on one Redis. Each node follows the changes of the other. */

const AUDIENCE = 'https://vault.example.com';
const ISSUER = 'https://id.example.com';
const ON: IdentitySettings = { policy: 'yes', issuer: ISSUER };
const view = exampleView();
const web = instanceRecord({}, { uuid: view.uuid });
let redis: RedisServer;
let ahead = 0;

interface Node extends AsyncDisposable {
  readonly lab: IdentityLab;
  /** Resolves with the identity in the next view that is published. */
  nextView(): Promise<unknown>;
}

let one: Node;
let two: Node;
before(async () => {
  redis = await startRedis();
  const ring = ringOf(makeClusterKey());
  one = await startNode(ring);
  two = await startNode(ring);
});
after(async () => {
  for (const node of [one, two]) await node[Symbol.asyncDispose]();
  await redis.stop();
});

async function startNode(ring: ReturnType<typeof ringOf>): Promise<Node> {
  const server = { url: `unix:${redis.socket}` };
  const store = createSealedStore(
    await createRedisStore({ server, logger: silentLogger }),
    () => ring,
  );
  const clock = { ...systemClock, now: () => Date.now() + ahead };
  const lab = await openIdentityLab(clock, [web], store);
  await lab.identities.hasChanged();
  let waiting = Promise.withResolvers<unknown>();
  const end = followCluster({
    ...{ store, identities: lab.identities, logger: silentLogger },
    relays: { refresh: async () => undefined },
    services: { refresh: () => Promise.resolve() },
    keeper: {
      republishAll: async () => {
        waiting.resolve(await lab.identities.planView(view, web, await lab.clusters.load()));
        waiting = Promise.withResolvers();
        return true;
      },
    },
    metad: { onRestarted: () => undefined },
  });
  return {
    lab,
    nextView: () => waiting.promise,
    [Symbol.asyncDispose]: async () => {
      end();
      await lab[Symbol.asyncDispose]();
    },
  };
}

async function ask({ lab }: Node): Promise<string> {
  const answer = await lab.identities.issue(web.uuid, new URLSearchParams({ audience: AUDIENCE }));
  return answer.kind === 'issued' ? answer.token : `${answer.status} ${answer.reason}`;
}

/** Verifies with the keys that this node publishes. */
async function verify(token: string, { lab }: Node): Promise<void> {
  const keys = await lab.published('.well-known/jwks.json');
  await verifyByPython(token, { keys, audience: AUDIENCE, issuer: ISSUER }, ahead > 0);
}

/** The header names the key. */
const keyOf = (token: string): string | undefined => token.split('.')[0];

test('nodes that turn identities on at once make one key, and Redis sees no part of it', async () => {
  const views = Promise.all([one.nextView(), two.nextView()]);
  await Promise.all([one, two].map(({ lab }) => lab.configure(ON)));
  await views;
  const [generation, ...others] = await two.lab.clusters.loadIdentityKeys();
  assert.deepEqual(others, []);
  await verify(await ask(one), two);
  await verify(await ask(two), one);
  const client = new Redis({ path: redis.socket });
  const keys = await client.keys('*');
  const dumps = await Promise.all(keys.map((key) => client.dumpBuffer(key)));
  client.disconnect();
  const all = Buffer.concat(dumps.map((dump) => dump ?? Buffer.alloc(0))).toString('latin1');
  assert.ok(keys.length > 0 && generation !== undefined);
  for (const line of generation.es256.split('\n').filter((each) => each.length > 30))
    assert.ok(!all.includes(line));
});

test('keys that one node renews sign on the other after the overlap, and at once without one', async () => {
  const former = await ask(two);
  await one.lab.clusters.renewIdentityKeys(3_600_000);
  const meanwhile = await ask(two);
  assert.equal(keyOf(meanwhile), keyOf(former));
  ahead = 3_600_001;
  try {
    const later = await ask(two);
    assert.notEqual(keyOf(later), keyOf(former));
    assert.equal(keyOf(await ask(one)), keyOf(later));
    for (const token of [former, later]) await verify(token, one);
    const next = two.nextView();
    await one.lab.clusters.renewIdentityKeys(0);
    assert.match(JSON.stringify(await next), /"ec2"/);
    const last = await ask(two);
    await verify(last, one);
    for (const token of [former, later]) await assert.rejects(verify(token, two), /StopIteration/);
  } finally {
    ahead = 0;
  }
});

test('a revocation on one node ends tokens and the view on the other', async () => {
  const revoked = two.nextView();
  await one.lab.configure({ ...ON, revoked: [web.uuid] });
  assert.equal(await revoked, undefined);
  assert.match(await ask(two), /^403 the identity of this instance is revoked/);
  assert.match(await two.lab.published('revoked.json'), new RegExp(web.uuid));
  const restored = two.nextView();
  await one.lab.configure(ON);
  assert.ok(await restored);
  await verify(await ask(two), one);
});
