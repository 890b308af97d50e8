import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import {
  type ContentServer,
  startContentServer,
} from '../../noded/net/metad-link/content-server.ts';
import { type IdentityLab, openIdentityLab, verifyByPython } from '../lab/identity-lab.ts';
import { instanceRecord } from '../noded/support/records.ts';
import { ChannelLab, type Guest, METAD_UID } from './support/channel-lab.ts';
import { askFromGuest, sendRaw } from './support/guest-http.ts';
import { exampleView, installingView } from './support/view-fixture.ts';

/** Tokens on their whole way: a guest, the real metad, the content socket and the signer. */

const AUDIENCE = 'https://vault.example.com';
const PATH = '/ganeti/latest/identity/token';
const GOOGLE = '/computeMetadata/v1/instance/service-accounts/default/identity';
const view = exampleView();
const neighbourView = exampleView({
  name: 'web2.example.com',
  uuid: '00000000-1f3d-49e9-b2b7-000000000002',
  nics: [],
  channel: { device: 'gnt.com.1', mac: '52:54:00:e1:a3:46', ip: '169.254.0.2', hopLimit: 1 },
});
const records = [view, neighbourView].map(({ uuid, name }) => instanceRecord({ name }, { uuid }));

let lab: ChannelLab;
let signer: IdentityLab;
let server: ContentServer;
let guest: Guest;
let neighbour: Guest;
let issued = 0;
let revision = 1;

before(async () => {
  signer = await openIdentityLab(systemClock, records);
  await signer.configure({ policy: 'yes' });
  lab = await ChannelLab.create();
  server = await startServer();
  guest = await lab.addGuest(view.channel);
  neighbour = await lab.addGuest(neighbourView.channel);
});
after(async () => {
  await server.close();
  await lab[Symbol.asyncDispose]();
  await signer[Symbol.asyncDispose]();
});

function startServer(): Promise<ContentServer> {
  return startContentServer({
    ...{ socketPath: lab.contentSocket, gid: METAD_UID, logger: silentLogger, clock: systemClock },
    content: {
      openImage: async () => undefined,
      openRelay: async () => ({ kind: 'refusal', status: 404, reason: 'no relay' }),
      openPackage: async () => undefined,
      openMirror: async () => undefined,
      findService: async () => undefined,
      findBootTree: async () => undefined,
      issueToken: (uuid, query) => {
        issued++;
        return signer.identities.issue(uuid, query);
      },
    },
  });
}

async function serve(overrides: Partial<typeof view> = {}): Promise<void> {
  for (const one of [view, neighbourView]) {
    const whole = { ...one, identity: {}, ...overrides, revision: revision++ };
    assert.equal((await lab.put(whole)).status, 204);
  }
}

async function ask(path: string, from = guest, headers: Record<string, string> = {}) {
  const { status, body, headers: answered } = await askFromGuest(from.namespace, path, { headers });
  return { status, text: body.toString(), headers: answered };
}

async function verify(token: string, audience = AUDIENCE) {
  const keys = await signer.published('.well-known/jwks.json');
  return verifyByPython(token, { keys, audience, issuer: 'https://lab.example.com' });
}

test('a guest gets a token of its own instance, and the same one again', async () => {
  await serve();
  const { status, text, headers } = await ask(`${PATH}?audience=${encodeURIComponent(AUDIENCE)}`);
  assert.equal(status, 200, text);
  assert.equal(headers['content-type'], 'text/plain');
  assert.equal(headers['cache-control'], 'no-store');
  const [header, claims] = await verify(text);
  assert.equal(header['alg'], 'ES256');
  assert.equal(claims['sub'], `spiffe://lab.example.com/instance/${view.uuid}`);
  const before = issued;
  assert.equal((await ask(`${PATH}?audience=${AUDIENCE}`)).text, text);
  assert.equal(issued, before);
  assert.match((await ask('/ganeti/latest/')).text, /^identity\/$/m);
});

test('the device alone decides about the instance, whatever the request says', async () => {
  await serve();
  const query = `audience=${AUDIENCE}&uuid=${view.uuid}&instance=${view.uuid}&sub=${view.uuid}`;
  const { text } = await ask(`${PATH}?${query}`, neighbour);
  const [, claims] = await verify(text);
  assert.equal(claims['sub'], `spiffe://lab.example.com/instance/${neighbourView.uuid}`);
  const traversal = `/ganeti/latest/identity/../../${view.uuid}/identity/token?${query}`;
  assert.equal((await ask(traversal, neighbour)).status, 404);
});

test('a new view drops the tokens of the former one', async () => {
  await serve();
  const { text } = await ask(`${PATH}?audience=${AUDIENCE}`);
  await serve();
  assert.notEqual((await ask(`${PATH}?audience=${AUDIENCE}`)).text, text);
});

test("Google's path needs its header, and answers with an RS256 token and the header", async () => {
  await serve();
  const path = `${GOOGLE}?audience=${AUDIENCE}&format=full&licenses=TRUE`;
  assert.equal((await ask(path)).status, 403);
  const { text, headers } = await ask(path, guest, { 'Metadata-Flavor': 'Google' });
  assert.equal(headers['metadata-flavor'], 'Google');
  const [header, claims] = await verify(text);
  assert.equal(header['alg'], 'RS256');
  assert.ok('google' in claims);
});

test('the EC2 tree has a token by aud, in no listing', async () => {
  await serve();
  const { status, text } = await ask(`/latest/meta-data/identity?aud=${AUDIENCE}`);
  assert.equal(status, 200, text);
  await verify(text);
  assert.doesNotMatch((await ask('/latest/meta-data/')).text, /identity/);
});

test('without an identity in the view there is no path, also during an installation', async () => {
  const without = { ...view, revision: revision++ };
  assert.equal((await lab.put(without)).status, 204);
  for (const path of [PATH, GOOGLE, '/latest/meta-data/identity'])
    assert.equal((await ask(`${path}?audience=a&aud=a`)).status, 404, path);
  assert.equal((await lab.put({ ...installingView(), revision: revision++ })).status, 204);
  assert.equal((await ask(`${PATH}?audience=a`)).status, 404);
});

test('a session token is required where the instance requires one', async () => {
  await serve({ metadataToken: 'required' });
  const header = 'X-aws-ec2-metadata-token';
  assert.equal((await ask(`${PATH}?audience=${AUDIENCE}`)).status, 401);
  const google = { 'Metadata-Flavor': 'Google' };
  assert.equal((await ask(`${GOOGLE}?audience=${AUDIENCE}`, guest, google)).status, 401);
  const { body } = await askFromGuest(guest.namespace, '/latest/api/token', {
    method: 'PUT',
    headers: { [`${header}-ttl-seconds`]: '60' },
  });
  const answer = await ask(`${PATH}?audience=${AUDIENCE}`, guest, { [header]: body.toString() });
  assert.equal(answer.status, 200);
});

test('bad audiences are refused without asking the node', async () => {
  await serve();
  const before = issued;
  for (const query of [
    '',
    '?',
    '?audience=',
    '?audience=a%0d%0ab',
    '?audience=%ff',
    '?audience=a&audience=b',
  ])
    assert.equal((await ask(`${PATH}${query}`)).status, 400, query);
  const long = `GET ${PATH}?audience=${'a'.repeat(1_000_000)} HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n`;
  const refusal = await sendRaw(guest.namespace, long).catch((error: unknown) => String(error));
  assert.match(refusal, /431|EPIPE|ECONNRESET/);
  assert.equal(issued, before);
});

test('thousands of audiences of one guest cost 32 tokens, and its neighbour nothing', async () => {
  await serve();
  await ask(`${PATH}?audience=${AUDIENCE}`, neighbour);
  const before = issued;
  const statuses = new Map<number, number>();
  for (let round = 0; round < 20; round++) {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => ask(`${PATH}?audience=a${round}-${index}`)),
    );
    for (const { status } of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  assert.ok(issued - before <= 40, `${issued - before} issued`);
  assert.ok((statuses.get(429) ?? 0) > 900, JSON.stringify([...statuses]));
  assert.equal((await ask(`${PATH}?audience=new`, neighbour)).status, 200);
  const before2 = issued;
  assert.equal((await ask(`${PATH}?audience=${AUDIENCE}`, neighbour)).status, 200);
  assert.equal(issued, before2);
});

test('while the node daemon is away, kept tokens are served and new ones are 503', async () => {
  await serve();
  const { text } = await ask(`${PATH}?audience=${AUDIENCE}`, neighbour);
  await server.close();
  try {
    assert.equal((await ask(`${PATH}?audience=${AUDIENCE}`, neighbour)).text, text);
    const answer = await ask(`${PATH}?audience=away`, neighbour);
    assert.equal(answer.status, 503);
    assert.equal(answer.headers['retry-after'], '1');
    assert.equal(answer.text.trim(), 'the node cannot issue tokens now', 'without a path');
    await lab.logLine('identity.not-issued');
    assert.equal((await ask('/ganeti/latest/meta_data.json', neighbour)).status, 200);
  } finally {
    server = await startServer();
  }
  assert.equal((await ask(`${PATH}?audience=away`, neighbour)).status, 200);
});

test("metad's log has requests without audience and token", async () => {
  await lab.logLine('identity/token');
  assert.ok(!lab.log.includes(AUDIENCE));
  assert.ok(!lab.log.includes('eyJ'));
});
