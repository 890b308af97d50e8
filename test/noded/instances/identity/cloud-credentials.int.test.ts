import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { z } from 'zod';
import type { Cloud } from '#shared/contract/cloud-credentials.ts';
import type { IdentitySettings } from '#shared/contract/identity.ts';
import { IDENTITY } from '../../../../noded/records/identity-keys.ts';
import {
  ACCOUNT,
  type CloudLab,
  type Misbehaviour,
  PROVIDER,
  ROLE,
  startCloud,
} from '../../../lab/cloud-lab.ts';
import { type IdentityLab, openIdentityLab } from '../../../lab/identity-lab.ts';
import { exampleView } from '../../../metad/support/view-fixture.ts';
import { instanceRecord } from '../../support/records.ts';

/** The exchange against security token services that verify tokens with an independent library. */

const ISSUER = 'https://id.example.com';
const web = instanceRecord({}, { uuid: exampleView().uuid, tags: ['web'] });
const neighbour = instanceRecord({ name: 'web2.example.com' }, { tags: [] });
const credentials = z.looseObject({ Code: z.string(), Message: z.string().optional() });
let lab: IdentityLab;
let cloud: CloudLab;
let wallAheadMs = 0;
let monotonicAheadMs = 0;

before(async () => {
  const now = (): number => Date.now() + wallAheadMs;
  const clock = {
    now,
    monotonicMs: () => performance.now() + monotonicAheadMs,
  };
  lab = await openIdentityLab(clock, [web, neighbour]);
  const keys = (): Promise<string> => lab.published('.well-known/jwks.json');
  cloud = await startCloud({ keys, issuer: ISSUER, now });
});
after(async () => {
  await cloud[Symbol.asyncDispose]();
  await lab[Symbol.asyncDispose]();
});
let round = 0;
beforeEach(async () => {
  // Other settings, so that no test finds the credentials of another one.
  await configure({ trustDomain: `td${round++}.example.com` });
  cloud.lifeS = 3600;
  lab.log.length = 0;
});
afterEach(() => {
  cloud.misbehaviour = undefined;
  [wallAheadMs, monotonicAheadMs] = [0, 0];
});

async function configure(changes: Partial<IdentitySettings> = {}): Promise<void> {
  const settings: IdentitySettings = {
    ...{ policy: 'yes', issuer: ISSUER },
    aws: { sts: cloud.url, role: ROLE },
    google: {
      ...{ provider: PROVIDER, account: ACCOUNT },
      ...{ sts: `${cloud.url}/v1/token`, iam: cloud.url },
    },
  };
  await lab.configure({ ...settings, ...changes }, cloud.certificate);
}

function pass(ms: number): void {
  wallAheadMs += ms;
  monotonicAheadMs += ms;
}

/** Lets the next request wait. @returns its response */
function hold(): Promise<ServerResponse> {
  return new Promise((resolve) => {
    cloud.misbehaviour = (_, response) => resolve(response);
  });
}

async function ask(which: Cloud = 'aws', uuid = web.uuid): Promise<string> {
  const answer = await lab.credentials.issue(uuid, which);
  return answer.kind === 'issued' ? answer.token : `${answer.status} ${answer.reason}`;
}

async function askAws(uuid = web.uuid): Promise<z.infer<typeof credentials>> {
  return credentials.parse(JSON.parse(await ask('aws', uuid)));
}

test('an instance gets the credentials of its role in the form of IMDS, with a line in its log', async () => {
  const given = await askAws();
  assert.deepEqual(Object.keys(given), [
    ...['Code', 'LastUpdated', 'Type', 'AccessKeyId', 'SecretAccessKey', 'Token', 'Expiration'],
  ]);
  assert.equal(given.Code, 'Success');
  assert.equal(given['Type'], 'AWS-HMAC');
  assert.match(String(given['Expiration']), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  const { sub } = cloud.accepted.at(-1) ?? {};
  assert.match(String(sub), new RegExp(`^spiffe://td\\d+.example.com/instance/${web.uuid}$`));
  const lines = await lab.readAudit(web.uuid);
  assert.match(lines, /identity token \S+ for sts\.amazonaws\.com, 300 s/);
  assert.match(
    lines,
    new RegExp(`AWS credentials ${String(given['AccessKeyId'])} of ${ROLE} until`),
  );
  for (const secret of ['SecretAccessKey', 'Token'] as const)
    assert.ok(!lines.includes(String(given[secret])), secret);
});

test('concurrent requests share one exchange, and later ones its credentials', async () => {
  const before = cloud.asked.length;
  const all = await Promise.all(Array.from({ length: 50 }, () => ask()));
  assert.equal(new Set(all).size, 1);
  assert.equal(await ask(), all[0]);
  assert.equal(cloud.asked.length, before + 1);
});

test('credentials are renewed 20 minutes before they expire, and not earlier', async () => {
  const first = await ask();
  pass(39 * 60_000);
  assert.equal(await ask(), first);
  pass(2 * 60_000);
  assert.notEqual(await ask(), first);
});

test('while the STS hangs, valid credentials are served at once and expired ones never', async () => {
  const first = await ask();
  pass(41 * 60_000);
  const held = hold();
  const startedAtMs = performance.now();
  assert.equal(await ask(), first);
  assert.ok(performance.now() - startedAtMs < 2000, 'before botocore gives up twice');
  (await held).destroy();
  assert.equal(await ask(), first, 'also after the failure');
  pass(18.5 * 60_000);
  cloud.misbehaviour = undefined;
  const { Code: code, Expiration: expiration } = await askAws();
  assert.equal(code, 'Success');
  assert.notEqual(expiration, credentials.parse(JSON.parse(first))['Expiration']);
});

for (const [name, wallMs, monotonicMs] of [
  ['set forward by a day', 86_400_000, 0],
  ['set forward by ten minutes', 600_000, 0],
  ['set back by a day', -86_400_000, 0],
] as const)
  test(`credentials are exchanged again after the clock was ${name}`, async () => {
    const before = cloud.asked.length;
    const first = await ask();
    wallAheadMs += wallMs;
    monotonicAheadMs += monotonicMs;
    await ask();
    assert.equal(cloud.asked.length, before + 2);
    assert.ok(first.includes('"Success"'));
  });

const BAD: readonly (readonly [string, Misbehaviour, RegExp])[] = [
  ['redirects', (_, r) => void r.writeHead(307, { location: '/elsewhere' }).end(), /redirects/],
  [
    'sends endless bytes',
    (_, r) => {
      const send = (): void =>
        void (r.destroyed || (r.write(Buffer.alloc(65_536)), setImmediate(send)));
      r.writeHead(200);
      send();
    },
    /more than 65536 bytes/,
  ],
  ['sends text', (_, r) => void r.end('hello'), /without valid AccessKeyId/],
  [
    'sends an entity',
    (_, r) => void r.end('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>'),
    /without valid/,
  ],
  ['closes the connection', (_, r) => void r.destroy(), /cannot be used/],
  ['answers 500', (_, r) => void r.writeHead(500).end('<a/>'), /answered 500/],
  ['answers 429', (_, r) => void r.writeHead(429).end(), /answered 429/],
];
for (const [name, misbehaviour, reason] of BAD)
  test(`an STS that ${name} makes Code Failed, with the reason in the log only`, async () => {
    cloud.misbehaviour = misbehaviour;
    const before = cloud.asked.length;
    const given = await askAws();
    assert.equal(given.Code, 'Failed');
    assert.equal(given.Message, 'the node cannot get credentials now');
    assert.match(lab.log.join('\n'), reason);
    assert.equal((await askAws()).Code, 'Failed');
    assert.equal(lab.log.length, 1, 'once');
    assert.equal(cloud.asked.length, before + 1, 'no redirection, no repetition');
    cloud.misbehaviour = undefined;
    monotonicAheadMs += 10_001;
    wallAheadMs += 10_001;
    assert.equal((await askAws()).Code, 'Success', 'after ten seconds');
  });

test('a hanging exchange of one instance does not delay its neighbour', async () => {
  const held = hold();
  const hanging = askAws();
  const response = await held;
  cloud.misbehaviour = undefined;
  assert.equal((await askAws(neighbour.uuid)).Code, 'Success');
  response.destroy();
  assert.equal((await hanging).Code, 'Failed');
});

test('an STS cannot make credentials that live for ever, for seconds, or have expired', async () => {
  for (const lifeS of [14 * 3600, 30, -10]) {
    cloud.lifeS = lifeS;
    await configure({ trustDomain: `life${lifeS + 10}.example.com` });
    assert.equal((await askAws()).Code, 'Failed');
    assert.match(lab.log.at(-1) ?? '', /compare the clocks/);
  }
});

test("a refusal shows the service's code to the guest, and its reason without the token in the log", async () => {
  cloud.misbehaviour = (request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += String(chunk)));
    request.on('end', () => {
      const token = new URLSearchParams(body).get('WebIdentityToken') ?? '';
      response
        .writeHead(403)
        .end(
          `<ErrorResponse><Error><Code>AccessDenied</Code><Message>no ${token}\r\n</Message></Error></ErrorResponse>`,
        );
    });
  };
  const given = await askAws();
  assert.equal(given.Code, 'AssumeRoleUnauthorizedAccess');
  assert.equal(given.Message, 'the STS refuses the role web: AccessDenied');
  assert.match(lab.log.join('\n'), /AccessDenied: no <redacted>/);
  assert.ok(!lab.log.join('\n').includes('eyJ'));
});

test('a tag gives another role than the setting, and a misspelt tag gives none', async () => {
  const tagged = { ...web, tags: ['gnt:aws-role=arn:aws:iam::1:role/other'] };
  lab.instances.set(web.uuid, tagged);
  try {
    assert.match(String((await askAws()).Message), /refuses the role other/);
    lab.instances.set(web.uuid, { ...web, tags: ['gnt:aws-role=admin'] });
    assert.equal(await ask(), '404 this instance has no AWS role');
  } finally {
    lab.instances.set(web.uuid, web);
  }
});

test('changed tags, a revocation and other settings end the use of credentials', async () => {
  const first = await ask();
  lab.instances.set(web.uuid, { ...web, tags: [] });
  assert.notEqual(await ask(), first, 'other claims');
  lab.instances.set(web.uuid, web);
  await configure({ revoked: [web.uuid] });
  assert.match(await ask(), /^403 .*revoked/);
  await configure({ policy: 'no' });
  assert.match(await ask(), /^403 identity tokens are off/);
  await lab.configure({ policy: 'yes' });
  assert.equal(await ask(), '404 the cluster has no credentials of this cloud');
  assert.match(await ask('aws', '00000000-0000-0000-0000-000000000000'), /^404/);
});

test('credentials do not depend on the audiences that guests may ask for', async () => {
  await configure({ audiences: ['https://vault.example.com'] });
  assert.equal((await askAws()).Code, 'Success');
});

test('without identity keys there are no credentials', async () => {
  const record = { collection: IDENTITY, id: 'keys', expected: 'any' } as const;
  await lab.store.commit([{ ...record, value: undefined }]);
  try {
    assert.equal((await askAws()).Code, 'Failed');
    assert.match(lab.log.join('\n'), /no identity keys/);
  } finally {
    await lab.clusters.renewIdentityKeys(0);
  }
});

test('the certificate of the STS must be trusted', async () => {
  await lab.configure({ policy: 'yes', aws: { sts: cloud.url, role: ROLE } });
  const before = cloud.asked.length;
  assert.equal((await askAws()).Code, 'Failed');
  assert.match(lab.log.join('\n'), /certificate/);
  assert.equal(cloud.asked.length, before, 'no token');
});

test("the host's own cloud metadata service cannot be the STS", async () => {
  await configure({ aws: { sts: 'https://169.254.169.254/', role: ROLE } });
  assert.equal((await askAws()).Code, 'Failed');
  assert.match(lab.log.join('\n'), /link-local address/);
});

test('Google gives an access token of the service account, or of the federated identity', async () => {
  const token = z.strictObject({
    access_token: z.string(),
    expires_in: z.number().int().min(3590).max(3600),
    token_type: z.literal('Bearer'),
  });
  const given = token.parse(JSON.parse(await ask('google')));
  assert.match(given.access_token, /^ya29\./);
  assert.match(
    await lab.readAudit(web.uuid),
    new RegExp(`Google access token of ${ACCOUNT} until`),
  );
  const settings = { provider: PROVIDER, sts: `${cloud.url}/v1/token`, iam: cloud.url };
  await configure({ google: settings });
  const federated = token.parse(JSON.parse(await ask('google')));
  assert.match(federated.access_token, /^federated\./);
  await configure({ google: { ...settings, account: 'other@project.iam.gserviceaccount.com' } });
  assert.match(await ask('google'), /^403 the cloud refuses this instance: PERMISSION_DENIED/);
  cloud.misbehaviour = (_, response) => void response.end('{}');
  await configure({ google: { ...settings, account: 'third@project.iam.gserviceaccount.com' } });
  assert.equal(await ask('google'), '503 the node cannot issue tokens now');
});

test('one guest cannot read the credentials of another', async () => {
  const [own, others] = [await askAws(), await askAws(neighbour.uuid)];
  assert.notEqual(own['AccessKeyId'], others['AccessKeyId']);
  assert.notEqual(cloud.accepted.at(-1)?.sub, cloud.accepted.at(-2)?.sub);
});
