import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  createLocalJWKSet,
  decodeProtectedHeader,
  importJWK,
  type JSONWebKeySet,
  type JWK,
  type JWTPayload,
  jwtVerify,
} from 'jose';
import { systemClock } from '#shared/clock/clock.ts';
import { type IdentityLab, openIdentityLab } from '../../../lab/identity-lab.ts';
import { instanceRecord } from '../../support/records.ts';

/** The documented rules of verifiers, with an independent library. */

const AUDIENCE = 'https://vault.example.com';
const ISSUER = 'https://id.example.com';
const TRUST_DOMAIN = 'td.example.com';
const web = instanceRecord({}, { tags: ['web', 'env:prod'] });
let lab: IdentityLab;

before(async () => {
  lab = await openIdentityLab(systemClock, [web]);
  await lab.configure({ policy: 'yes', issuer: ISSUER, trustDomain: TRUST_DOMAIN });
});
after(() => lab[Symbol.asyncDispose]());

async function issue(alg: 'ES256' | 'RS256'): Promise<string> {
  const query = new URLSearchParams({ audience: AUDIENCE, alg });
  const answer = await lab.identities.issue(web.uuid, query);
  return answer.kind === 'issued' ? answer.token : assert.fail(answer.reason);
}

async function read<T>(path: string): Promise<T> {
  return JSON.parse(await lab.published(path)) as T;
}

/** Vault's `bound_claims`: a JSON pointer, and a value that equals the claim or is in its list. */
function isBound(claims: JWTPayload, pointer: string, value: string): boolean {
  const found = pointer
    .split('/')
    .slice(1)
    .reduce<unknown>((from, name) => (from as Record<string, unknown> | undefined)?.[name], claims);
  return Array.isArray(found) ? found.includes(value) : found === value;
}

for (const alg of ['ES256', 'RS256'] as const) {
  test(`Vault's method jwt accepts an ${alg} token for the bound issuer, audience and claims alone`, async () => {
    const discovery = await read<Record<string, unknown>>('.well-known/openid-configuration');
    // oidc_discovery_url must equal the issuer in the document.
    assert.equal(discovery['issuer'], ISSUER);
    assert.equal(discovery['jwks_uri'], `${ISSUER}/.well-known/jwks.json`);
    const algorithms = discovery['id_token_signing_alg_values_supported'] as string[];
    assert.ok(algorithms.includes(alg));
    const keys = createLocalJWKSet(await read<JSONWebKeySet>('.well-known/jwks.json'));
    const token = await issue(alg);
    const bound = { issuer: ISSUER, audience: AUDIENCE, algorithms };
    const { payload } = await jwtVerify(token, keys, bound);
    // user_claim names the alias of the entity, and must be a text.
    assert.equal(payload.sub, `spiffe://${TRUST_DOMAIN}/instance/${web.uuid}`);
    for (const claim of ['exp', 'iat', 'nbf'] as const) assert.ok(Number.isInteger(payload[claim]));
    assert.ok(isBound(payload, '/gnt/tags', 'web'));
    assert.ok(isBound(payload, '/gnt/uuid', web.uuid));
    assert.ok(!isBound(payload, '/gnt/tags', 'db'));
    const refused = (changes: object, code: RegExp): Promise<void> =>
      assert.rejects(jwtVerify(token, keys, { ...bound, ...changes }), code);
    await refused({ issuer: 'https://other.example.com' }, /"iss"/);
    await refused({ audience: 'https://other.example.com' }, /"aud"/);
    await refused({ currentDate: new Date(Date.now() + 901_000) }, /"exp"/);
    await refused({ currentDate: new Date(Date.now() - 60_000) }, /"nbf"|"iat"/);
    await refused({ algorithms: ['HS256'] }, /alg/i);
  });

  test(`an ${alg} token is a JWT-SVID for the SPIFFE bundle`, async () => {
    const token = await issue(alg);
    // JWT-SVID, 2: no other members of the header than alg, kid and typ.
    const { typ, kid, ...header } = decodeProtectedHeader(token);
    assert.deepEqual([header, typ], [{ alg }, 'JWT']);
    const bundle = await read<{ keys: (JWK & { use: string })[] }>('spiffe/bundle.json');
    const key = bundle.keys.find((each) => each.kid === kid);
    assert.equal(key?.use, 'jwt-svid');
    const { payload } = await jwtVerify(token, await importJWK(key, alg), { audience: AUDIENCE });
    // 3.1: the subject is a SPIFFE ID, whose path has no empty or dotted segment (SPIFFE-ID, 2.2).
    assert.match(
      payload.sub ?? '',
      /^spiffe:\/\/td\.example\.com(?:\/(?!\.{1,2}(?:\/|$))[\w.-]+)+$/,
    );
    // 3.2, 3.3: audience and end are required.
    assert.equal(payload.aud, AUDIENCE);
    assert.ok(Number(payload.exp) > Date.now() / 1000);
  });
}
