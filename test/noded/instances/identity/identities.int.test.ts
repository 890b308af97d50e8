import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { ec2Document } from '#shared/contract/ec2-document.ts';
import type { IdentitySettings, ViewIdentity } from '#shared/contract/identity.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { IDENTITY } from '../../../../noded/records/identity-keys.ts';
import {
  type IdentityLab,
  openIdentityLab,
  verifyByOpenssl,
  verifyByPython,
} from '../../../lab/identity-lab.ts';
import { exampleView } from '../../../metad/support/view-fixture.ts';
import { instanceRecord } from '../../support/records.ts';

const AUDIENCE = 'https://vault.example.com';
const ISSUER = 'https://id.example.com/gnt';
const ON: IdentitySettings = { policy: 'yes', issuer: ISSUER, trustDomain: 'td.example.com' };

const web = instanceRecord({}, { uuid: exampleView().uuid, tags: ['web'] });
let lab: IdentityLab;
let ahead = 0;

before(async () => {
  const clock = { ...systemClock, now: () => Date.now() + ahead };
  lab = await openIdentityLab(clock, [web]);
});
after(() => lab[Symbol.asyncDispose]());

async function ask(query: Record<string, string> = {}, uuid = web.uuid): Promise<string> {
  const answer = await lab.identities.issue(
    uuid,
    new URLSearchParams({ audience: AUDIENCE, ...query }),
  );
  return answer.kind === 'issued' ? answer.token : `${answer.status} ${answer.reason}`;
}

async function trusted(audience = AUDIENCE) {
  return { keys: await lab.published('.well-known/jwks.json'), audience, issuer: ISSUER };
}

for (const alg of ['ES256', 'RS256']) {
  test(`python3-jwt accepts an ${alg} token with the published keys, for its audience alone`, async () => {
    await lab.configure(ON);
    const token = await ask({ alg, ttl: '300' });
    const [header, claims] = await verifyByPython(token, await trusted());
    assert.equal(header['alg'], alg);
    assert.equal(claims['sub'], `spiffe://td.example.com/instance/${web.uuid}`);
    assert.equal(Number(claims['exp']) - Number(claims['iat']), 300);
    await assert.rejects(
      verifyByPython(token, await trusted('https://other.example.com')),
      /Audience/,
    );
    const [head, , signature] = token.split('.');
    const forged = Buffer.from(JSON.stringify({ ...claims, sub: 'spiffe://td/x' }));
    const other = [head, forged.toString('base64url'), signature].join('.');
    await assert.rejects(verifyByPython(other, await trusted()), /Signature/);
  });
}

test('each token has a line in the audit log, without the token', async () => {
  await lab.configure(ON);
  const token = await ask();
  const [, claims] = await verifyByPython(token, await trusted());
  const audit = await lab.readAudit(web.uuid);
  assert.match(audit, new RegExp(`identity token ${String(claims['jti'])} for ${AUDIENCE}, 900 s`));
  for (const part of token.split('.')) assert.ok(!audit.includes(part));
});

test('refuses unknown instances, audiences that are not allowed, and revoked instances', async () => {
  await lab.configure(ON);
  assert.match(await ask({}, '00000000-0000-4000-8000-00000000ffff'), /^404 /);
  await lab.configure({ ...ON, audiences: ['https://other.example.com'] });
  assert.match(await ask(), /^403 this audience is not allowed/);
  await lab.configure({ ...ON, revoked: [web.uuid] });
  assert.match(await ask(), /^403 the identity of this instance is revoked/);
  assert.deepEqual(JSON.parse(await lab.published('revoked.json')), { instances: [web.uuid] });
  await lab.configure({ ...ON, policy: 'no' });
  assert.match(await ask(), /^403 identity tokens are off; turn them on with/);
});

test('tokens stay valid through a renewal of the keys, also a token issued during the renewal', async () => {
  await lab.configure(ON);
  const earlier = await trusted();
  const before = await ask();
  const [meanwhile] = await Promise.all([ask(), lab.clusters.renewIdentityKeys(3_600_000)]);
  // A verifier that has not read the new key set accepts all tokens of the overlap.
  for (const token of [before, meanwhile, await ask()]) await verifyByPython(token, earlier);
  await verifyByPython(before, await trusted());
  ahead = 3_600_001;
  try {
    const later = await ask();
    await verifyByPython(later, await trusted(), true);
    await verifyByPython(before, await trusted(), true);
    await assert.rejects(verifyByPython(later, earlier, true), /StopIteration/);
  } finally {
    ahead = 0;
  }
});

test('openssl verifies the signatures of the EC2 document, which a renewal replaces', async () => {
  await lab.configure(ON);
  await lab.clusters.renewIdentityKeys(0);
  const view = exampleView();
  const sign = async (): Promise<NonNullable<ViewIdentity['ec2']>> => {
    const identity = await lab.identities.planView(view, web, await lab.clusters.load());
    return identity?.ec2 ?? assert.fail('not signed');
  };
  const first = await sign();
  assert.equal(first.document, ec2Document(view));
  const certificate = await lab.published('ec2-certificates.pem');
  await verifyByOpenssl(first, certificate);
  const document = first.document.replace(view.instanceId, web.uuid);
  await assert.rejects(
    verifyByOpenssl({ ...first, document }, certificate),
    /Verification failure/i,
  );
  assert.equal(await sign(), first, 'signed once');
  assert.equal(await lab.identities.hasChanged(), false, 'the first look');
  await lab.clusters.renewIdentityKeys(0);
  assert.equal(await lab.identities.hasChanged(), true);
  await verifyByOpenssl(await sign(), await lab.published('ec2-certificates.pem'));
  await assert.rejects(verifyByOpenssl(await sign(), certificate));
});

test('a failing store shows its address in the log only', async (t) => {
  await lab.configure(ON);
  const failure = new AppError('STORE_UNAVAILABLE', 'the store 10.0.0.1:6379 does not answer');
  t.mock.method(lab.clusters, 'load', () => Promise.reject(failure));
  assert.equal(await ask(), '503 the node cannot issue tokens now');
});

test('without keys, tokens are refused and views are made', async () => {
  await lab.configure(ON);
  const record = { collection: IDENTITY, id: 'keys', expected: 'any' } as const;
  const cluster = await lab.clusters.load();
  await lab.store.commit([{ ...record, value: { schema: 1, generations: 'spoilt' } }]);
  assert.equal(await ask(), '503 the node cannot issue tokens now');
  assert.deepEqual(await lab.identities.planView(exampleView(), web, cluster), {});
  await lab.store.commit([{ ...record, value: undefined }]);
  assert.match(await ask(), /^503 the cluster has no identity keys/);
  assert.deepEqual(await lab.identities.planView(exampleView(), web, cluster), {});
  await lab.clusters.renewIdentityKeys(0);
  await verifyByPython(await ask(), await trusted());
});
