import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OsSettings } from '#shared/contract/api.ts';
import { applyOsChanges } from '../../../noded/operations/change-cluster.ts';
import { describeSsh } from '../../../noded/instances/reports/host-keys.ts';
import {
  applyChanges,
  refuseNewTags,
  refuseOtherInstallation,
} from '../../../noded/operations/change-instance.ts';
import { modifyOpcode, parseOpcode } from '../support/opcodes.ts';
import { instanceRecord } from '../support/records.ts';

const before = instanceRecord({
  osParameters: { pub: '1' },
  osParametersPrivate: { priv: '2' },
  osParametersSecret: { sec: '3' },
  metadata: { a: '1', b: '2' },
  communication: true,
});

test('what was not given stays as it is', () => {
  assert.deepEqual(applyChanges(before, modifyOpcode()), before);
});

test('a tag of before there was a rule is kept and taken away, and no new one is like it', () => {
  const old = { ...before, tags: ['of before', 'web'] };
  const tagsAfter = (changes: Parameters<typeof modifyOpcode>[0]): readonly string[] => {
    const { tags } = applyChanges(old, modifyOpcode(changes));
    refuseNewTags(old.tags, tags);
    return tags;
  };
  assert.deepEqual(tagsAfter({ removeTags: ['of before'] }), ['web']);
  assert.deepEqual(tagsAfter({ tags: ['of before'] }), ['of before']);
  assert.throws(() => tagsAfter({ tags: ['of today'] }), {
    code: 'VALIDATION',
    message: "--tags: 'of today': not a tag",
  });
  assert.throws(() => modifyOpcode({ addTags: ['of today'] }), /not a tag/);
});

test('what is meant for one installation never reaches the next', () => {
  const { instanceId } = before;
  const meant = modifyOpcode({ hostKeys: [], instanceId });
  refuseOtherInstallation(before, meant);
  refuseOtherInstallation(before, modifyOpcode());
  const reinstalled = { ...before, instanceId: '0c2a1b2c-0000-4000-8000-0000000000ff' };
  assert.throws(() => refuseOtherInstallation(reinstalled, meant), { code: 'CONFLICT' });
});

test('host keys that are accepted are of the present installation; none at all are believed again as said first', () => {
  const [key = '', other = ''] = ['A', 'B'].map(
    (last) => `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(42)}${last}`,
  );
  const { instanceId } = before;
  const known = { ...before, hostKeys: { instanceId, keys: [key] } };
  const after = applyChanges(known, modifyOpcode({ hostKeys: [other], instanceId }));
  assert.deepEqual(after.hostKeys, { instanceId, keys: [other] });
  assert.deepEqual(describeSsh(after, null).hostKeys, [other]);
  assert.deepEqual(applyChanges(known, modifyOpcode()).hostKeys, known.hostKeys);
  assert.equal(applyChanges(known, modifyOpcode({ hostKeys: [], instanceId })).hostKeys, null);
});

test('values are put, null removes, documents too', () => {
  const after = applyChanges(
    { ...before, userData: 'eA==' },
    modifyOpcode({
      osParameters: { pub: null, more: 'x' },
      metadata: { a: null, c: '3' },
      userData: null,
      communication: false,
    }),
  );
  assert.deepEqual(after.osParameters, { more: 'x' });
  assert.deepEqual(after.metadata, { b: '2', c: '3' });
  assert.deepEqual([after.userData, after.communication], [null, false]);
});

test("hooks take the place of the instance's own, in the order of their names; none removes them", () => {
  const hook = (name: string) => ({ name, content: 'eA==' });
  const after = applyChanges(
    { ...before, hooks: [hook('old.yaml')] },
    modifyOpcode({ hooks: [hook('b.yaml'), hook('a.yaml')] }),
  );
  assert.deepEqual(after.hooks, [hook('a.yaml'), hook('b.yaml')]);
  assert.deepEqual(applyChanges(after, modifyOpcode()).hooks, after.hooks);
  assert.deepEqual(applyChanges(after, modifyOpcode({ hooks: [] })).hooks, []);
  assert.throws(() => applyChanges(before, modifyOpcode({ hooks: [hook('a'), hook('a')] })), {
    code: 'VALIDATION',
  });
});

test('a parameter moves to the visibility in which it is given, and leaves its old one', () => {
  const toPrivate = applyChanges(
    before,
    modifyOpcode({ osParametersPrivate: { pub: 'x', sec: 'y' } }),
  );
  assert.deepEqual(toPrivate.osParameters, {});
  assert.deepEqual(toPrivate.osParametersPrivate, { priv: '2', pub: 'x', sec: 'y' });
  assert.deepEqual(toPrivate.secretNames, []);
  const toSecret = applyChanges(
    before,
    modifyOpcode({ osParametersSecret: { pub: 'x', priv: 'y' } }),
  );
  assert.deepEqual([toSecret.osParameters, toSecret.osParametersPrivate], [{}, {}]);
  assert.deepEqual(toSecret.secretNames, ['priv', 'pub', 'sec']);
});

test('values of secrets are in no record', () => {
  const after = applyChanges(before, modifyOpcode({ osParametersSecret: { new: 'S3CRET' } }));
  assert.ok(!JSON.stringify(after).includes('S3CRET'));
  assert.deepEqual(after.secretNames, ['new', 'sec']);
});

test('one backend or hypervisor parameter changes without the others', () => {
  const after = applyChanges(
    { ...before, hvparams: { accel: 'tcg' } },
    modifyOpcode({ beparams: { vcpus: 4 }, hvparams: { kernel_args: 'quiet' } }),
  );
  assert.deepEqual(after.beparams, { memoryMiB: 512, vcpus: 4 });
  assert.deepEqual(after.hvparams, { accel: 'tcg', kernel_args: 'quiet' });
});

test('null resets a backend parameter to its default and takes the others away', () => {
  const after = applyChanges(
    {
      ...before,
      beparams: { memoryMiB: 2048, vcpus: 8 },
      hvparams: { accel: 'tcg', kernel_args: 'quiet' },
      installParameters: { boot_order: 'cdrom', cdrom_image_path: '/srv/a.iso' },
    },
    modifyOpcode({
      beparams: { memoryMiB: null },
      hvparams: { kernel_args: null },
      installParameters: { boot_order: null },
    }),
  );
  assert.deepEqual(after.beparams, { memoryMiB: 512, vcpus: 8 });
  assert.deepEqual(after.hvparams, { accel: 'tcg' });
  assert.deepEqual(after.installParameters, { cdrom_image_path: '/srv/a.iso' });
});

test('null in one visibility leaves a parameter of the same name in another, and a secret can be forgotten', () => {
  const after = applyChanges(
    before,
    modifyOpcode({
      osParameters: { priv: null, sec: null },
      osParametersSecret: { sec: null, pub: null },
    }),
  );
  assert.deepEqual(after.osParametersPrivate, { priv: '2' });
  assert.deepEqual([after.osParameters, after.secretNames], [{ pub: '1' }, []]);
});

const settings: OsSettings = {
  schema: 1,
  name: 'debian',
  trusted: false,
  hidden: false,
  blacklisted: false,
  safeInstall: 'optional',
  osParameters: { pub: '1' },
  osParametersPrivate: { priv: '2' },
};

test("a definition's default moves to the visibility in which it is given", () => {
  const change = (input: object): OsSettings => {
    const opcode = parseOpcode({ opcode: 'OS_SET_PARAMS', name: 'debian', ...input });
    assert.ok(opcode.opcode === 'OS_SET_PARAMS');
    return applyOsChanges(settings, opcode);
  };
  const toPublic = change({ osParameters: { priv: 'x' } });
  assert.deepEqual(toPublic.osParameters, { pub: '1', priv: 'x' });
  assert.deepEqual(toPublic.osParametersPrivate, {});
  const toPrivate = change({ osParametersPrivate: { pub: 'x' } });
  assert.deepEqual(
    [toPrivate.osParameters, toPrivate.osParametersPrivate],
    [{}, { priv: '2', pub: 'x' }],
  );
  assert.deepEqual(change({ osParameters: { pub: null } }).osParametersPrivate, { priv: '2' });
  assert.equal(change({ trusted: true }).trusted, true);
});

test('tags are replaced, added once each, and removed', () => {
  const tagged = applyChanges(before, modifyOpcode({ tags: ['a', 'b'] }));
  assert.deepEqual(tagged.tags, ['a', 'b']);
  const changed = applyChanges(tagged, modifyOpcode({ addTags: ['b', 'c'], removeTags: ['a'] }));
  assert.deepEqual(changed.tags, ['b', 'c']);
});
