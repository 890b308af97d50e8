import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  describeUnkept,
  describeUnreached,
  describeUnread,
} from '../../../../noded/instances/record/unread-values.ts';

const silent = { communication: false, osType: null, installParameters: {}, bootEnv: null };
const given = { osParameters: { color: 'red' }, userData: 'eA==', sshKeys: ['ssh-ed25519 AAAA'] };

test('names what was given to a guest that is served nothing', () => {
  assert.match(
    describeUnread(silent, given) ?? '',
    /^--os-parameters, --user-data, --ssh-key will have no effect: .*--communication=yes/,
  );
});

test('parameters have a reader in the scripts of an OS, documents have not', () => {
  const scripted = { ...silent, osType: 'hello' };
  assert.equal(describeUnread(scripted, { osParametersPrivate: { color: 'red' } }), null);
  assert.match(
    describeUnread(scripted, given) ?? '',
    /^--user-data, --ssh-key will have no effect: /,
  );
});

test('says nothing where the channel is on, where a medium reads, and of what is taken back', () => {
  assert.equal(describeUnread({ ...silent, communication: true }, given), null);
  const fromMedium = { ...silent, installParameters: { cdrom_image_path: '/srv/a.iso' } };
  assert.equal(describeUnread(fromMedium, given), null);
  const takenBack = { osParameters: { color: null }, userData: null, metadata: { role: null } };
  assert.equal(describeUnread(silent, takenBack), null);
  assert.equal(describeUnread(silent, { sshKeys: [], seedDisk: false }), null);
});

test('tells of a guest that neither a NIC nor the channel leads to, and of no other', () => {
  const lonely = { communication: false, nics: [] };
  assert.match(describeUnreached(lonely) ?? '', /no NIC, no channel .* and no SSH key/);
  assert.equal(describeUnreached({ ...lonely, communication: true }), null);
  assert.equal(describeUnreached({ ...lonely, nics: [{}] }), null);
});

test('tells of secrets that nobody keeps, and never their values', () => {
  const told = describeUnkept({ osParametersSecret: { password: 'S3CRET' } }) ?? '';
  assert.match(told, /--os-parameters-secret are never stored, .*gnt-instance startup/);
  assert.doesNotMatch(told, /S3CRET/);
  assert.equal(describeUnkept({ osParametersSecret: { password: null } }), null);
  assert.equal(describeUnkept({}), null);
});

const each: readonly (readonly [string, Parameters<typeof describeUnread>[1]])[] = [
  ['--os-parameters', { osParameters: { color: 'red' } }],
  ['--os-parameters-private', { osParametersPrivate: { color: 'red' } }],
  ['--os-parameters-secret', { osParametersSecret: { color: 'red' } }],
  ['--user-data', { userData: 'eA==' }],
  ['--vendor-data', { vendorData: 'eA==' }],
  ['--network-config', { networkConfig: 'eA==' }],
  ['--ssh-key', { sshKeys: ['ssh-ed25519 AAAA'] }],
  ['--metadata', { metadata: { role: 'web' } }],
  ['--seed-disk', { seedDisk: true }],
  ['--dialects', { dialects: ['ec2'] }],
  ['--metadata-token', { metadataToken: 'required' }],
];
for (const [option, values] of each)
  test(`a guest without a channel does not read ${option}`, () => {
    assert.ok(describeUnread(silent, values)?.startsWith(`${option} will have no effect: `));
  });
