import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { clusterModify } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import {
  composeIdentity,
  runIdentity,
  runRenewIdentityKeys,
} from '../../../../cluster-cli/commands/cluster/identity.ts';
import type { Context } from '../../../../cluster-cli/terminal/context.ts';
import { createValueSource } from '../../../../cluster-cli/values/value-source.ts';
import { mergeIdentity } from '../../../../noded/instances/identity/merge-identity.ts';
import { planPublished } from '../../../../noded/instances/identity/published.ts';
import { openIdentityLab } from '../../../lab/identity-lab.ts';

const values = createValueSource();
const UUID = '6aa7b544-1f3d-49e9-b2b7-73836039b5cf';

/** A context whose client has these answers. */
function contextOf(answers: Record<string, unknown>, printed: string[]): Context {
  const client = {
    ask: (endpoint: string) => Promise.resolve(answers[endpoint] ?? assert.fail(endpoint)),
  };
  const print = (text: string): void => void printed.push(text);
  return { client: () => Promise.resolve(client), print, note: print } as unknown as Context;
}

function merge(former: Parameters<typeof mergeIdentity>[0], options: object): unknown {
  const { identity } = composeIdentity(options, { values, warn: () => assert.fail('a warning') });
  const opcode = clusterModify.parse({ opcode: 'CLUSTER_SET_PARAMS', identity });
  return mergeIdentity(former, opcode.identity ?? assert.fail('no change'));
}

test('identity options set, keep and unset the settings', () => {
  const set = {
    policy: 'tagged',
    trustDomain: 'td.example.com',
    issuer: 'https://id.example.com',
    audiences: ['a', 'b'],
    revoked: [UUID],
  } as const;
  assert.deepEqual(
    merge(undefined, {
      identity: 'tagged',
      identityTrustDomain: 'td.example.com',
      identityIssuer: 'https://id.example.com',
      identityAudiences: 'a,b',
      identityRevoke: [UUID],
    }),
    set,
  );
  const former = { ...set, audiences: [...set.audiences], revoked: [...set.revoked] };
  assert.deepEqual(merge(former, { identity: 'no' }), { ...set, policy: 'no' });
  assert.deepEqual(
    merge(former, {
      identityTrustDomain: 'none',
      identityIssuer: 'none',
      identityAudiences: 'none',
      identityRevoke: [`${UUID}=none`],
    }),
    { policy: 'tagged' },
  );
});

for (const identity of [
  { trustDomain: 'TD' },
  { trustDomain: 'a/b' },
  { issuer: 'http://id.example.com' },
  { issuer: 'https://u:p@id.example.com' },
  { issuer: 'https://id.example.com/' },
  { issuer: 'https://id.example.com/?x' },
  { audiences: ['a b'] },
  { revoked: { web1: true } },
  { aws: { sts: 'http://sts.example.com' } },
  { aws: { sts: 'https://u:p@sts.example.com' } },
  { aws: { sts: 'https://sts.example.com/?Action=x' } },
  { aws: { sts: 'https://sts.example.com', role: 'admin' } },
  { aws: { sts: 'https://sts.example.com', role: 'arn:aws:iam::1:role/..' } },
  { aws: { sts: 'https://sts.example.com', region: 'EU' } },
  { aws: { sts: 'https://sts.example.com', roles: { '-': 'arn:aws:iam::1:role/a' } } },
  { google: { provider: '//iam/p', account: 'a@b/../c' } },
  { google: { provider: '//iam/p', iam: 'https://iam.example.com/#x' } },
])
  test(`the node refuses the setting ${JSON.stringify(identity)}`, () => {
    const parsed = clusterModify.safeParse({ opcode: 'CLUSTER_SET_PARAMS', identity });
    assert.equal(parsed.success, false);
  });

test('options of clouds are read as a whole, with the roles of profiles', () => {
  const set = merge(undefined, {
    identity: 'yes',
    identityAws:
      'sts=https://sts.example.com,role=arn:aws:iam::1:role/a,role:db=arn:aws:iam::1:role/b',
    identityGoogle: 'provider=//iam/p,account:web=a@p.iam.gserviceaccount.com',
  });
  const google = { provider: '//iam/p', accounts: { web: 'a@p.iam.gserviceaccount.com' } };
  assert.deepEqual(set, {
    policy: 'yes',
    aws: {
      sts: 'https://sts.example.com',
      role: 'arn:aws:iam::1:role/a',
      roles: { db: 'arn:aws:iam::1:role/b' },
    },
    google,
  });
  const former = set as Parameters<typeof mergeIdentity>[0];
  const less = merge(former, { identityAws: 'sts=https://sts.example.com,role=none' });
  assert.deepEqual(less, { policy: 'yes', aws: { sts: 'https://sts.example.com' }, google });
  assert.deepEqual(merge(former, { identityAws: 'none', identityGoogle: 'none' }), {
    policy: 'yes',
  });
});

for (const [option, value, message] of [
  ['identityAws', 'role=arn:aws:iam::1:role/a', /--identity-aws: sts is missing/],
  ['identityAws', 'sts=https://a,rol=x', /unknown parameter 'rol'/],
  ['identityAws', 'sts=https://a,role', /Missing value for key 'role'/],
  ['identityAws', '', /sts is missing/],
  ['identityGoogle', 'account=a@b', /--identity-google: provider is missing/],
] as const)
  test(`the option ${option} '${value}' is refused`, () => {
    const context = { values, warn: () => undefined };
    assert.throws(() => composeIdentity({ [option]: value }, context), { code: 'USAGE', message });
  });

test('a name in place of a UUID is refused with the command that shows the UUID', () => {
  const refused = (error: unknown): boolean =>
    error instanceof AppError && /gnt-instance info web1/.test(error.hint ?? '');
  const context = { values, warn: () => undefined };
  assert.throws(() => composeIdentity({ identityRevoke: ['web1'] }, context), refused);
});

test('identity export writes each document, again over the former ones', async () => {
  await using lab = await openIdentityLab(systemClock, []);
  await lab.configure({ policy: 'yes', issuer: 'https://id.example.com' });
  const keys = await lab.clusters.loadIdentityKeys();
  const documents = planPublished(await lab.clusters.load(), keys, systemClock.now());
  const directory = await mkdtemp(join(tmpdir(), 'gnt-export-'));
  try {
    const printed: string[] = [];
    const answer = { issuer: 'https://id.example.com', documents };
    const context = contextOf({ 'GET /v1/cluster/identity': answer }, printed);
    for (let count = 0; count < 2; count++) await runIdentity(context, 'export', directory);
    for (const [name, text] of Object.entries(documents))
      assert.equal(await readFile(join(directory, name), 'utf8'), text);
    assert.deepEqual((await readdir(directory)).sort(), [
      '.well-known',
      'ec2-certificates.pem',
      'revoked.json',
      'spiffe',
    ]);
    assert.match(printed.at(-1) ?? '', /serve this directory at https:\/\/id\.example\.com/);
    await assert.rejects(runIdentity(context, 'show', directory), { code: 'USAGE' });
    const file = join(directory, 'revoked.json');
    await assert.rejects(runIdentity(context, 'export', file), { code: 'FILE_UNREADABLE' });
  } finally {
    await rm(directory, { recursive: true });
  }
});

test('identity export writes through no link, for every reader, and leaves no halves', async () => {
  const top = await mkdtemp(join(tmpdir(), 'gnt-export-'));
  const umask = process.umask(0o077);
  try {
    const [victim, directory] = [join(top, 'victim'), join(top, 'served')];
    await writeFile(victim, 'whole');
    await mkdir(directory);
    for (const name of ['revoked.json', 'revoked.json.new'])
      await symlink(victim, join(directory, name));
    const documents = { 'revoked.json': '{}\n', 'spiffe/bundle.json': '{}\n' };
    const answer = { issuer: 'https://id.example.com', documents };
    const context = contextOf({ 'GET /v1/cluster/identity': answer }, []);
    await runIdentity(context, 'export', directory);
    assert.equal(await readFile(victim, 'utf8'), 'whole');
    assert.equal(await readFile(join(directory, 'revoked.json'), 'utf8'), '{}\n');
    const modes = ['revoked.json', 'spiffe', 'spiffe/bundle.json'].map(async (name) => {
      const { mode } = await stat(join(directory, name));
      return (mode & 0o777).toString(8);
    });
    assert.deepEqual(await Promise.all(modes), ['644', '755', '644']);
    assert.equal(process.umask(), 0o077, 'for the rest of the command');
    await rm(join(directory, 'spiffe'), { recursive: true });
    await mkdir(join(directory, 'spiffe/bundle.json'), { recursive: true });
    await assert.rejects(runIdentity(context, 'export', directory), { code: 'FILE_UNREADABLE' });
    assert.deepEqual(await readdir(join(directory, 'spiffe')), ['bundle.json']);
  } finally {
    process.umask(umask);
    await rm(top, { recursive: true });
  }
});

test('renewal of identity keys says from when they sign', async () => {
  const printed: string[] = [];
  const renew = async (signsFromMs: number, overlap: number): Promise<void> => {
    const answer = { keys: [{ createdAtMs: 0, signsFromMs }] };
    const context = contextOf({ 'POST /v1/cluster/identity-keys': answer }, printed);
    await runRenewIdentityKeys(context, { overlap });
  };
  await renew(Date.UTC(2026, 0, 1), 3600);
  assert.match(printed[0] ?? '', /sign from 2026-01-01/);
  await renew(0, 0);
  assert.match(printed[2] ?? '', /former tokens are no longer accepted/);
});
