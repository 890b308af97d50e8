import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IdentitySettings } from '#shared/contract/identity.ts';
import { parseTokenRequest } from '#shared/contract/identity.ts';
import { judgeIdentity, planClaims } from '../../../../noded/instances/identity/claims.ts';
import { clusterRecord, instanceRecord } from '../../support/records.ts';

const TIME = { issuedAt: 1000, id: 'ID' };
const VAULT = 'https://vault.example.com';

function judge(tags: readonly string[], identity?: IdentitySettings): unknown {
  const instance = instanceRecord({}, { tags: [...tags] });
  const found = judgeIdentity(instance, { identity });
  return 'refusal' in found ? 'refused' : found.audiences;
}

test('an instance has an identity by policy and tags, unless it is revoked', () => {
  const { uuid } = instanceRecord();
  assert.equal(judge([]), 'refused', 'off by default');
  assert.equal(judge(['gnt:identity'], { policy: 'no' }), 'refused');
  assert.equal(judge([], { policy: 'yes' }), null, 'all audiences');
  assert.equal(judge([], { policy: 'tagged' }), 'refused');
  assert.equal(judge(['gnt:identity-not'], { policy: 'tagged' }), 'refused');
  assert.equal(judge(['gnt:identity'], { policy: 'tagged' }), null);
  assert.equal(judge(['gnt:identity'], { policy: 'yes', revoked: [uuid] }), 'refused');
  assert.deepEqual(judge([], { policy: 'yes', audiences: [VAULT] }), [VAULT]);
});

test('tags limit the audiences of an instance to those of the cluster', () => {
  const own = `gnt:identity=${VAULT}`;
  assert.deepEqual(judge([own], { policy: 'tagged' }), [VAULT]);
  assert.deepEqual(judge([own], { policy: 'yes' }), [VAULT], 'also if all have one');
  assert.deepEqual(
    judge([own, 'gnt:identity'], { policy: 'tagged' }),
    null,
    'the wider tag counts',
  );
  assert.deepEqual(judge([own], { policy: 'tagged', audiences: ['b'] }), [], 'no way around');
});

test('claims have the facts of the record, and no login of its image', () => {
  const request = parseTokenRequest(new URLSearchParams({ audience: VAULT, ttl: '60' }));
  const instance = instanceRecord(
    { osType: 'debian+small' },
    {
      osImage: 'https://u:S3CRET@images.example.com/a.raw?token=S3CRET2',
      ...{ osImageChecksum: 'sha256:00', tags: ['web'] },
    },
  );
  const claims = planClaims(instance, clusterRecord, request, TIME);
  assert.deepEqual(claims, {
    iss: 'https://cluster.example.com',
    sub: `spiffe://cluster.example.com/instance/${instance.uuid}`,
    aud: VAULT,
    exp: 1060,
    nbf: 1000,
    iat: 1000,
    jti: 'ID',
    gnt: {
      name: 'web1.example.com',
      uuid: instance.uuid,
      node: 'node1.example.com',
      cluster: 'cluster.example.com',
      tags: ['web'],
      os: 'debian+small',
      installation: {
        id: instance.instanceId,
        state: instance.installState,
        job: null,
        started_at: null,
        ended_at: null,
        image: 'https://<redacted>@images.example.com/a.raw?token=<redacted>',
        image_checksum: 'sha256:00',
        package_checksum: null,
        appliance: null,
      },
      provenance: null,
    },
  });
  const full = planClaims(instance, clusterRecord, { ...request, format: 'full' }, TIME);
  assert.ok('google' in full);
});

test('claims have the provenance and the result of the last installation', () => {
  const provenance = {
    ...{ imageChecksum: 'sha256:01', imageKey: 'openpgp:02' },
    ...{ osDigest: 'sha256:03', applianceDigest: null },
  };
  const install = {
    ...{ jobId: 7, startedAtMs: 1000, stages: [], logFile: null, stage: null, error: null },
    ...{ state: 'success' as const, endedAtMs: 5999, provenance },
  };
  const claims = planClaims(
    instanceRecord({}, { install }),
    clusterRecord,
    parseTokenRequest(new URLSearchParams({ audience: VAULT })),
    TIME,
  );
  const { gnt } = claims as { gnt: { provenance: unknown } };
  assert.deepEqual(gnt.provenance, {
    image_checksum: 'sha256:01',
    image_key: 'openpgp:02',
    os_digest: 'sha256:03',
    appliance_digest: null,
    result: 'success',
    installed_at: 5,
  });
});

test('tags that are too long for a header are left out as a whole, and the token says so', () => {
  const tags = Array.from({ length: 1000 }, (_, index) => `${index}`.padEnd(128, 'x'));
  const request = parseTokenRequest(new URLSearchParams({ audience: VAULT }));
  const text = JSON.stringify(
    planClaims(instanceRecord({}, { tags }), clusterRecord, request, TIME),
  );
  assert.ok(text.length < 2048, `${text.length}`);
  assert.match(text, /"tags_omitted":true/);
});

for (const [query, problem] of [
  ['', 'audience: missing'],
  ['audience=', 'audience: '],
  ['audience=a%20b', 'audience: '],
  ['audience=a%0Ab', 'audience: '],
  ['audience=a%00', 'audience: '],
  ['audience=%C3%A9', 'audience: '],
  [`audience=${'a'.repeat(1025)}`, 'audience: longer'],
  ['audience=a&audience=b', 'audience: given more than once'],
  ['audience=a&ttl=59', 'ttl: '],
  ['audience=a&ttl=901', 'ttl: '],
  ['audience=a&ttl=60.5', 'ttl: '],
  ['audience=a&ttl=1e999', 'ttl: '],
  ['audience=a&ttl=', 'ttl: '],
  ['audience=a&alg=none', 'alg: '],
  ['audience=a&alg=HS256', 'alg: '],
  ['audience=a&format=odd', 'format: '],
] as const) {
  test(`refuses the token request '${query.slice(0, 40)}' and names the parameter`, () => {
    assert.throws(
      () => parseTokenRequest(new URLSearchParams(query)),
      (error: Error) => error.message.startsWith(problem) || assert.fail(error.message),
    );
  });
}
