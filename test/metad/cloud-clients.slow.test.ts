import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { GOOGLE_STS } from '#shared/contract/cloud-credentials.ts';
import { silentLogger } from '#shared/log/log.ts';
import {
  type ContentServer,
  startContentServer,
} from '../../noded/net/metad-link/content-server.ts';
import { awsCliTree } from '../e2e/support/aws-cli-package.ts';
import { ACCOUNT, BUCKET, type CloudLab, PROVIDER, ROLE, startCloud } from '../lab/cloud-lab.ts';
import { type IdentityLab, openIdentityLab } from '../lab/identity-lab.ts';
import { instanceRecord } from '../noded/support/records.ts';
import { ChannelLab, type Guest, METAD_UID } from './support/channel-lab.ts';
import { foreignClients, runPython } from './support/foreign-clients.ts';
import { askFromGuest } from './support/guest-http.ts';
import { GuestTree } from './support/guest-tree.ts';
import { exampleView } from './support/view-fixture.ts';

/**
 * Clients of clouds in a guest without any key: they find credentials at the metadata service, and
 * an S3 verifies their signatures.
 */

const JS_CLOUDS = join(import.meta.dirname, 'support/js-clouds.ts');
/** Region without a service of Amazon, so that no client reaches one. */
const REGION = 'zz-test-1';
const S3_PORT = 9000;
const ISSUER = 'https://id.example.com';
const CREDENTIALS = '/latest/meta-data/iam/security-credentials/';
const ACCOUNTS = '/computeMetadata/v1/instance/service-accounts/';
const FLAVOR = { 'Metadata-Flavor': 'Google' };
const record = instanceRecord({}, { uuid: exampleView().uuid, tags: ['web'] });

let aws: string;
let clients: string;
let lab: ChannelLab;
let guest: Guest;
let signer: IdentityLab;
let cloud: CloudLab;
let server: ContentServer;
let revision = 1;

before(
  async () => {
    aws = await awsCliTree();
    clients = await foreignClients();
    signer = await openIdentityLab(systemClock, [record]);
    const keys = (): Promise<string> => signer.published('.well-known/jwks.json');
    cloud = await startCloud({ keys, issuer: ISSUER });
    await signer.configure(
      {
        ...{ policy: 'yes', issuer: ISSUER },
        aws: { sts: cloud.url, role: ROLE, region: REGION },
        google: {
          ...{ provider: PROVIDER, account: ACCOUNT },
          ...{ sts: `${cloud.url}/v1/token`, iam: cloud.url },
        },
      },
      cloud.certificate,
    );
    lab = await ChannelLab.create();
    server = await startServer();
    guest = await lab.addGuest(exampleView().channel);
  },
  { timeout: 1_500_000 },
);
after(async () => {
  await server.close();
  await lab[Symbol.asyncDispose]();
  await cloud[Symbol.asyncDispose]();
  await signer[Symbol.asyncDispose]();
});

function startServer(): Promise<ContentServer> {
  const { name, uuid } = record;
  return startContentServer({
    ...{ socketPath: lab.contentSocket, gid: METAD_UID, logger: silentLogger, clock: systemClock },
    content: {
      openImage: async () => undefined,
      openRelay: async () => ({ kind: 'refusal', status: 404, reason: 'no relay' }),
      openPackage: async () => undefined,
      openMirror: async () => undefined,
      findBootTree: async () => undefined,
      findService: async () => ({
        instance: { name, uuid, ip: exampleView().channel.ip },
        ...{ port: S3_PORT, protocol: 'tcp' },
        destination: { host: '127.0.0.1', hostPort: cloud.s3Port },
      }),
      issueToken: (id, query, which) =>
        which === null ? signer.identities.issue(id, query) : signer.credentials.issue(id, which),
    },
  });
}

/** Shows the view that the node makes of the present settings. */
async function serve(metadataToken: 'optional' | 'required' = 'optional'): Promise<void> {
  const view = exampleView({
    ...{ metadataToken, revision: revision++ },
    services: [{ name: 's3', port: S3_PORT, host: '127.0.0.1', hostPort: cloud.s3Port }],
  });
  const identity = await signer.identities.planView(view, record, await signer.clusters.load());
  const answer = await lab.put({ ...view, identity });
  assert.equal(answer.status, 204, answer.body.toString());
}

async function ask(path: string, headers: Record<string, string> = {}) {
  const {
    status,
    body,
    headers: answered,
  } = await askFromGuest(guest.namespace, path, { headers });
  return { status, text: body.toString(), headers: answered };
}

for (const metadataToken of ['optional', 'required'] as const)
  test(`aws s3 ls lists the buckets without any configuration, a token being ${metadataToken}`, async () => {
    await serve(metadataToken);
    await using tree = await GuestTree.create(aws, guest.namespace);
    const output = await tree.run(
      [
        'set -e',
        'exec 2>&1',
        'mount -t proc proc /proc',
        `aws --endpoint-url http://169.254.169.254:${S3_PORT} s3 ls`,
        'aws configure list',
      ].join('\n'),
    );
    assert.match(output, new RegExp(`${BUCKET}$`, 'm'));
    assert.match(output, /access_key .* iam-role/);
    assert.match(output, new RegExp(`region +${REGION} +imds`));
  });

test('the EC2 tree lists the role, and shows it as an instance profile', async () => {
  await serve();
  assert.match((await ask('/latest/meta-data/')).text, /^iam\/$/m);
  assert.equal((await ask(CREDENTIALS)).text, 'web');
  const answer = await ask(`${CREDENTIALS}web`);
  assert.equal(answer.headers['content-type'], 'text/plain');
  assert.equal(answer.headers['cache-control'], 'no-store');
  const given = JSON.parse(answer.text) as Record<string, string>;
  assert.equal(given['Code'], 'Success');
  const info = JSON.parse((await ask('/latest/meta-data/iam/info')).text) as typeof given;
  const profile = 'arn:aws:iam::123456789012:instance-profile/web';
  assert.equal(info['InstanceProfileArn'], profile);
  assert.equal((await ask(`${CREDENTIALS}admin`)).status, 404);
  const document = (await ask('/latest/dynamic/instance-identity/document')).text;
  assert.equal((JSON.parse(document) as typeof given)['region'], REGION);
});

test('the credentials need a session token where the instance requires one', async () => {
  await serve('required');
  for (const path of [CREDENTIALS, `${CREDENTIALS}web`, `${ACCOUNTS}default/token`])
    assert.equal((await ask(path, FLAVOR)).status, 401, path);
});

test("botocore and AWS's JavaScript client find the credentials of the role", async () => {
  await serve();
  const program = `
import json
from botocore.session import Session
session = Session()
found = session.get_credentials().get_frozen_credentials()
print(json.dumps([session.get_credentials().method, found.access_key, found.token]))`;
  const found = await runPython(guest, { clients, tree: clients }, program);
  const output = await guest.run(process.execPath, JS_CLOUDS, 'aws');
  const { accessKeyId, sessionToken } = JSON.parse(output) as Record<string, string>;
  assert.deepEqual(found, ['iam-role', accessKeyId, sessionToken]);
});

test("Google's client finds an access token, the account and an identity token", async () => {
  await serve();
  const output = await guest.run(
    ...['env', 'METADATA_SERVER_DETECTION=assume-present', 'GCE_METADATA_HOST=169.254.169.254'],
    ...['GOOGLE_CLOUD_PROJECT=project', process.execPath, JS_CLOUDS, 'google'],
  );
  const { token, email, identity } = JSON.parse(output) as Record<string, string>;
  assert.match(token ?? '', /^ya29\./);
  assert.equal(email, ACCOUNT);
  assert.match(identity ?? '', /^eyJ/);
});

test("Google's client exchanges a token itself, with the file of the how-to page", async () => {
  await serve();
  const page = await readFile('docs/howto/cloud-credentials.md', 'utf8');
  const [, file = ''] = /```json\n(\{\n {2}"type": "external_account"[^`]*)```/.exec(page) ?? [];
  const path = join(lab.directory, 'external-account.json');
  await writeFile(
    path,
    file
      .replaceAll('AUDIENCE', PROVIDER)
      .replace(GOOGLE_STS, `http://169.254.169.254:${S3_PORT}/v1/token`),
  );
  const output = await guest.run(
    ...['env', `GOOGLE_APPLICATION_CREDENTIALS=${path}`, 'GOOGLE_CLOUD_PROJECT=project'],
    ...[process.execPath, JS_CLOUDS, 'google-file'],
  );
  assert.match(output, /^\{"token":"federated\.[0-9a-f]+"\}$/);
});

test("Google's paths need the header, and list both names of the account", async () => {
  await serve();
  assert.equal((await ask(ACCOUNTS)).status, 403);
  assert.equal((await ask(`${ACCOUNTS}default/token`)).status, 403);
  assert.equal((await ask(ACCOUNTS, FLAVOR)).text, `default/\n${ACCOUNT}/\n`);
  const whole = await ask(`${ACCOUNTS}default/?recursive=true`, FLAVOR);
  assert.equal(whole.headers['metadata-flavor'], 'Google');
  assert.deepEqual(JSON.parse(whole.text), {
    aliases: ['default'],
    email: ACCOUNT,
    scopes: ['https://www.googleapis.com/auth/cloud-platform'],
  });
  for (const name of ['default', ACCOUNT]) {
    const { text, headers } = await ask(`${ACCOUNTS}${name}/token?scopes=x`, FLAVOR);
    assert.equal(headers['metadata-flavor'], 'Google');
    assert.match(
      text,
      /^\{"access_token":"ya29\.[0-9a-f]+","expires_in":3\d{3},"token_type":"Bearer"\}$/,
    );
    const identity = await ask(`${ACCOUNTS}${name}/identity?audience=a`, FLAVOR);
    assert.equal(identity.status, 200);
  }
  for (const path of ['other/token', 'default/key', 'default/token/x', 'other/identity?audience=a'])
    assert.equal((await ask(ACCOUNTS + path, FLAVOR)).status, 404, path);
});

test('without the node daemon, the EC2 tree tells the failure with status 200, and Google 503', async () => {
  await serve();
  await server.close();
  try {
    const { status, text } = await ask(`${CREDENTIALS}web`);
    assert.equal(status, 200);
    assert.equal((JSON.parse(text) as Record<string, string>)['Code'], 'Failed');
    const google = await ask(`${ACCOUNTS}default/token`, FLAVOR);
    assert.equal(google.status, 503);
    assert.equal(google.headers['retry-after'], '1');
  } finally {
    server = await startServer();
  }
  assert.match((await ask(`${CREDENTIALS}web`)).text, /"Success"/);
});

test('a flood of requests for credentials gets 429, and no log has a secret', async () => {
  await serve();
  const { SecretAccessKey: secret = '-' } = JSON.parse(
    (await ask(`${CREDENTIALS}web`)).text,
  ) as Record<string, string>;
  const refused: Awaited<ReturnType<typeof ask>>[] = [];
  for (let round = 0; round < 5; round++) {
    const answers = await Promise.all(Array.from({ length: 40 }, () => ask(`${CREDENTIALS}web`)));
    refused.push(...answers.filter(({ status }) => status === 429));
  }
  assert.ok(refused.length > 100, `${refused.length} refused`);
  assert.ok(Number(refused[0]?.headers['retry-after']) >= 1);
  assert.equal((await ask('/latest/meta-data/instance-id')).status, 200);
  await lab.logLine('security-credentials');
  for (const text of [lab.log, signer.log.join(), await signer.readAudit(record.uuid)])
    assert.ok(!text.includes(secret));
});

test('without settings of clouds there are no paths', async () => {
  const view = exampleView({ revision: revision++ });
  assert.equal((await lab.put({ ...view, identity: {} })).status, 204);
  for (const path of [CREDENTIALS, `${CREDENTIALS}web`, '/latest/meta-data/iam/info', ACCOUNTS])
    assert.equal((await ask(path, FLAVOR)).status, 404, path);
});
