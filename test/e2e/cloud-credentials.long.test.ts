import assert from 'node:assert/strict';
import { createPrivateKey, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { z } from 'zod';
import { instanceInfo } from '#shared/contract/instance.ts';
import { findSecret, holdsInMemory } from '../../scripts/demo/find-secret.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { buildGuestImage } from '../../scripts/guest-image/build.ts';
import { listenOnLoopback } from '../lab/listen-on-loopback.ts';
import { BUCKET, type CloudLab, ROLE, startCloud } from '../lab/cloud-lab.ts';
import { packAwsCli } from './support/aws-cli-package.ts';
import { endLab } from './support/end-lab.ts';
import { receiveUntil } from './support/receive-until.ts';

/**
 * docs/howto/cloud-credentials.md and credential-relay.md with a real guest: from `launch` to
 * `aws s3 ls` and a request through a relay. The guest's disk and memory then hold no key of the
 * cluster or the cloud, nor the secret of the relay.
 */
const NAME = 'web1.example.com';
const ISSUER = 'https://id.example.com';
const BOOT_TIMEOUT_MS = 600_000;
/** An emulated guest may need more than a second for a request. */
const USER_DATA = `#!/bin/sh
at=http://169.254.169.254
export HOME=/root PYTHONPATH=/opt/aws
export AWS_METADATA_SERVICE_TIMEOUT=30 AWS_METADATA_SERVICE_NUM_ATTEMPTS=3
{ python3 -m awscli --endpoint-url $at:9000 s3 ls 2>&1
  echo "status: $?"
  curl -sf $at/latest/meta-data/iam/info
  curl -sS $at/relay/model/v1/chat -d question
  echo end-of-report
} | curl -sf -X POST --data-binary @- $at/ganeti/latest/write
`;
let lab: Lab;
let cloud: CloudLab;
const relaySecret = `sk-${randomBytes(16).toString('hex')}`;
/** The server of the relay. Its answer repeats the credential. */
const model = createServer((request, response) => {
  const { url, headers } = request;
  response.end(`model: ${url} with ${headers.authorization}\n`);
});

before(async () => {
  const image = await buildGuestImage({ log: () => undefined });
  lab = await createLab('gnt-cloud');
  const { root } = lab.paths;
  cloud = await startCloud({
    issuer: ISSUER,
    keys: () => readFile(join(root, 'identity/.well-known/jwks.json'), 'utf8'),
  });
  const [userData, ca] = [join(root, 'user-data.sh'), join(root, 'ca.pem')];
  await writeFile(userData, USER_DATA);
  await writeFile(ca, cloud.certificate);
  const archive = await packAwsCli(root);
  await lab.startNode();
  await run('gnt-cluster', 'modify', '--identity', 'yes', '--identity-issuer', ISSUER);
  await run('gnt-cluster', 'identity', 'export', join(root, 'identity'));
  const aws = `sts=${cloud.url},role=${ROLE},region=zz-test-1`;
  await run('gnt-cluster', 'modify', '--identity-aws', aws, '--image-ca', `@${ca}`);
  const service = `s3=9000:127.0.0.1:${cloud.s3Port}`;
  await run('gnt-cluster', 'modify', '--expose-service', service);
  const port = await listenOnLoopback(model);
  const relay = `model=http://127.0.0.1:${port},access=all`;
  await run('gnt-cluster', 'modify', '--relay', relay);
  const given = await lab.run('gnt-cluster', ['set-relay-secret', 'model'], { input: relaySecret });
  assert.equal(given.status, 0, given.stderr);
  await run(
    ...(['gnt-instance', 'launch', '--no-wait', '-s', '2G', '-B', 'memory=512,vcpus=1'] as const),
    ...['--personalization-package', archive, '--user-data', userData, image.path, NAME],
  );
});
after(async () => {
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', NAME]);
  await endLab(lab);
  await cloud[Symbol.asyncDispose]();
  model.close();
});

async function run(program: Parameters<Lab['run']>[0], ...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await lab.run(program, args);
  assert.equal(status, 0, `${program} ${args.join(' ')}\n${stderr}`);
  return stdout;
}

test('the guest lists the buckets of an S3 with aws, and asks a server by a relay', async () => {
  const report = await receiveUntil(lab, NAME, 'end-of-report\n', BOOT_TIMEOUT_MS);
  assert.match(report, new RegExp(`${BUCKET}$`, 'm'));
  assert.match(report, /^status: 0$/m);
  assert.match(report, /"InstanceProfileArn": "arn:aws:iam::123456789012:instance-profile\/web"/);
  // The node has masked the credential in the answer.
  assert.match(report, /model: \/v1\/chat with Bearer \*+$/m);
  const audit = await run('gnt-instance', 'audit', NAME);
  assert.match(audit, new RegExp(`AWS credentials ASIA\\w+ of ${ROLE} until`));
  assert.match(await run('gnt-cluster', 'info'), /sts: https:\/\/127\.0\.0\.1/);
});

test('neither its memory nor its disk holds a key or secret of cluster, cloud and relay', async () => {
  const { running } = instanceInfo.parse(
    JSON.parse(await run('gnt-instance', 'info', '--json', NAME)),
  );
  const qemu = running?.pid ?? assert.fail('not running');
  const noded = lab.node().pid ?? 0;
  const keys = readPrivateKeys();
  // Positive controls: the answer in the guest, the keys in the signing daemon.
  assert.ok(await holdsInMemory(BUCKET, qemu));
  assert.ok(await holdsInMemory(keys[0] ?? '', noded));
  assert.ok(await holdsInMemory(relaySecret, noded));
  for (const key of [...keys, cloud.originSecret, relaySecret]) {
    assert.equal(await holdsInMemory(key, qemu), false);
    if (typeof key === 'string')
      assert.deepEqual(await findSecret(key, lab.paths.disksDir, () => false), []);
  }
  assert.equal(await holdsInMemory(cloud.originSecret, noded), false);
});

test("no file of the node has the guest's credentials", async () => {
  const path = '/latest/meta-data/iam/security-credentials/web';
  const shown = await run('gnt-instance', 'metadata', NAME, path);
  assert.match(shown, /streamed to the guest on request/);
  const issued = cloud.issued.map(({ secretAccessKey }) => secretAccessKey);
  assert.notDeepEqual(issued, []);
  assert.deepEqual(await findSecret(issued, lab.paths.root, () => false), []);
});

/** Returns parts of the private keys, as text of their files and as bytes. */
function readPrivateKeys(): readonly (string | Buffer)[] {
  using store = new DatabaseSync(lab.paths.storeFile, { readOnly: true });
  const row = store.prepare("SELECT value FROM records WHERE collection = 'identity'").get();
  const { generations } = z
    .object({ generations: z.array(z.object({ es256: z.string(), rs256: z.string() })).min(1) })
    .parse(JSON.parse(z.object({ value: z.string() }).parse(row).value));
  return generations.flatMap(({ es256, rs256 }) =>
    [es256, rs256].flatMap((pem) => {
      const { d = '' } = createPrivateKey(pem).export({ format: 'jwk' });
      return [pem.split('\n')[1] ?? '', Buffer.from(d, 'base64url')];
    }),
  );
}
