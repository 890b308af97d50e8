import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  awsRole,
  awsRoleOf,
  googleAccountOf,
  nameOfRole,
} from '#shared/contract/cloud-credentials.ts';
import { ec2Document } from '#shared/contract/ec2-document.ts';
import { exampleView } from '../../metad/support/view-fixture.ts';

const arn = (name: string): string => `arn:aws:iam::123456789012:role/${name}`;
const settings = { role: arn('default'), roles: { db: arn('db'), web: arn('web') } };

for (const [tags, profiles, role] of [
  [[], [], 'default'],
  [['gnt:aws-roles=x'], ['other'], 'default'],
  [[], ['other', 'web', 'db'], 'web'],
  [[`gnt:aws-role=${arn('own')}`], ['web'], 'own'],
  [[], ['constructor', '__proto__'], 'default'],
] as const)
  test(`tags '${tags.join()}' and profiles '${profiles.join()}' give the role ${role}`, () => {
    assert.equal(awsRoleOf({ tags, profiles }, settings), arn(role));
  });

test('a tag that is not a role gives none, and without settings there is none', () => {
  assert.equal(awsRoleOf({ tags: ['gnt:aws-role=admin'], profiles: ['web'] }, settings), undefined);
  assert.equal(awsRoleOf({ tags: [], profiles: ['web'] }, {}), undefined);
  const tags = ['gnt:google-account=own@p.iam.gserviceaccount.com'];
  const account = googleAccountOf({ tags, profiles: [] }, { account: 'a@p' });
  assert.equal(account, 'own@p.iam.gserviceaccount.com');
});

for (const role of [
  'arn:aws:iam::1:role/a/b/c',
  'arn:minio:iam:::role/id',
  'arn:aws-cn:iam::1:role/x',
])
  test(`${role} is a role with a name for a path`, () => {
    assert.match(nameOfRole(awsRole.parse(role)), /^[a-z]+$/);
  });

test('the document of a region has a zone from which clients derive the region', () => {
  const view = exampleView({ identity: { region: 'eu-central-1' } });
  const { region, availabilityZone } = JSON.parse(ec2Document(view)) as Record<string, string>;
  assert.deepEqual([region, availabilityZone], ['eu-central-1', 'eu-central-1a']);
});
