import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import type { DoctorFinding } from '#shared/contract/api.ts';
import { checkClouds } from '../../../../noded/operations/doctor/examine-clouds.ts';
import type { NodeParts } from '../../../../noded/operations/doctor/check.ts';
import { ACCOUNT, PROVIDER, startCloud } from '../../../lab/cloud-lab.ts';
import { openIdentityLab } from '../../../lab/identity-lab.ts';

test('doctor finds servers for credentials that do not answer, and spends no token', async () => {
  await using lab = await openIdentityLab(systemClock, []);
  await using cloud = await startCloud({ keys: async () => '{}', issuer: 'https://a.example.com' });
  const examine = async (): Promise<readonly DoctorFinding[]> => {
    // Other parts are not examined.
    const parts = { records: { clusters: lab.clusters } } as unknown as NodeParts;
    return [await checkClouds(parts)].flat();
  };
  const levels = async (): Promise<string[]> => (await examine()).map(({ level }) => level);
  const { url, certificate } = cloud;
  const aws = { sts: url };
  const google = { provider: PROVIDER, account: ACCOUNT, sts: `${url}/v1/token`, iam: `${url}/` };
  assert.deepEqual(await examine(), [], 'off');
  await lab.configure({ policy: 'yes', aws, google }, certificate);
  assert.deepEqual(await levels(), ['ok', 'ok', 'ok']);
  assert.equal(cloud.accepted.length, 0);
  assert.ok(cloud.asked.includes(`/v1/projects/-/serviceAccounts/${ACCOUNT}:generateAccessToken`));
  await lab.configure({ policy: 'yes', aws });
  const [untrusted] = await examine();
  assert.equal(untrusted?.level, 'warning');
  assert.match(untrusted?.message ?? '', /--identity-aws sts: https:.*certificate/);
  assert.match(untrusted?.hint ?? '', /--image-ca/);
  for (const status of [404, 503, 302]) {
    cloud.misbehaviour = (_request, response) =>
      response.writeHead(status, { location: 'https://b.example.com/' }).end();
    await lab.configure({ policy: 'yes', aws }, certificate);
    assert.deepEqual(await levels(), ['warning'], String(status));
  }
});
