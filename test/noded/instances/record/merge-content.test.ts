import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyChanges } from '../../../../noded/operations/change-instance.ts';
import {
  mergeImage,
  mergePackage,
  noPackage,
} from '../../../../noded/instances/record/merge-content.ts';
import { planReinstall } from '../../../../noded/instances/record/plan-record.ts';
import { modifyOpcode, reinstallOpcode } from '../../support/opcodes.ts';
import { instanceRecord } from '../../support/records.ts';

const stored = {
  osImage: '/a.qcow2',
  osImageChecksum: `sha256:${'a'.repeat(64)}`,
  osImageGrow: true,
  osImageFormat: 'qcow2',
} as const;
const uuid = (): string => '22222222-2222-4222-8222-222222222222';

test('an image that is taken back takes what is said of it along', () => {
  const none = { osImage: null, osImageChecksum: null, osImageGrow: false, osImageFormat: null };
  assert.deepEqual(mergeImage(stored, { osImage: null }), none);
  assert.deepEqual(mergeImage(stored, {}), stored);
});

test('an image that is named again keeps its checksum, until that is taken back', () => {
  assert.deepEqual(mergeImage(stored, { osImage: stored.osImage }), stored);
  const other = mergeImage(stored, { osImage: '/b.qcow2' });
  assert.deepEqual([other.osImageChecksum, other.osImageFormat], [null, null]);
  assert.equal(mergeImage(stored, { osImageChecksum: null }).osImageChecksum, null);
  const automatic = mergeImage(stored, { osImage: stored.osImage, osImageFormat: 'auto' });
  assert.deepEqual(
    [automatic.osImageChecksum, automatic.osImageFormat],
    [stored.osImageChecksum, null],
  );
});

test('a package that is named again keeps its checksum and needs its login', () => {
  const checked = {
    personalizationPackage: 'https://a/a.tgz',
    personalizationChecksum: stored.osImageChecksum,
    packageNeedsPassword: true,
  };
  const { personalizationPackage } = checked;
  assert.deepEqual(mergePackage(checked, { personalizationPackage }), checked);
});

test('a login without a package is refused, and one that was stored asks for nothing', () => {
  const login = { personalizationUser: 'u', personalizationPassword: 'p' };
  assert.throws(() => mergePackage(noPackage, login), { code: 'VALIDATION' });
  const half = { personalizationPackage: null, personalizationUser: 'u' };
  assert.throws(() => mergePackage({ ...noPackage, personalizationPackage: '/a.tgz' }, half), {
    code: 'VALIDATION',
  });
  assert.deepEqual(mergePackage({ ...noPackage, packageNeedsPassword: true }, {}), noPackage);
});

test('what is said of an image is refused when there is none', () => {
  const { osImageChecksum } = stored;
  assert.throws(() => mergeImage(stored, { osImage: null, osImageChecksum }), {
    code: 'VALIDATION',
  });
  const none = mergeImage(stored, { osImage: null });
  assert.throws(() => mergeImage(none, { osImageFormat: 'raw' }), { code: 'VALIDATION' });
});

test('a package that is taken back, or another one, needs no login of the old one', () => {
  const protectedOne = {
    personalizationPackage: '/a.tgz',
    personalizationChecksum: null,
    packageNeedsPassword: true,
  };
  assert.deepEqual(mergePackage(protectedOne, { personalizationPackage: null }), noPackage);
  assert.deepEqual(mergePackage(protectedOne, {}), protectedOne);
  const other = mergePackage(protectedOne, { personalizationPackage: '/b.tgz' });
  assert.equal(other.packageNeedsPassword, false);
});

test('a checksum is of one package: it stays with it, goes with it, and is refused without', () => {
  const [one, two] = [`sha256:${'a'.repeat(64)}`, `sha512:${'b'.repeat(128)}`];
  const sum = (
    stored: Parameters<typeof mergePackage>[0],
    given: Parameters<typeof mergePackage>[1],
  ): string | null => mergePackage(stored, given).personalizationChecksum;
  const checked = mergePackage(noPackage, {
    personalizationPackage: '/a.tgz',
    personalizationChecksum: one,
  });
  assert.equal(checked.personalizationChecksum, one);
  assert.equal(sum(checked, {}), one);
  assert.equal(sum(checked, { personalizationChecksum: two }), two);
  assert.equal(sum(checked, { personalizationChecksum: null }), null);
  assert.equal(sum(checked, { personalizationPackage: '/b.tgz' }), null);
  assert.equal(sum(checked, { personalizationPackage: null }), null);
  const alone = { personalizationChecksum: one };
  assert.throws(() => sum(noPackage, alone), { code: 'VALIDATION' });
  const taken = { personalizationPackage: null, ...alone };
  assert.throws(() => sum(checked, taken), { code: 'VALIDATION' });
});

test('an instance goes from its image to a medium and back, by reinstall and by modify', () => {
  const before = instanceRecord({ osType: 'debian', osImage: '/a.raw' });
  const toMedium = {
    osType: null,
    osImage: null,
    installParameters: { kernel_path: '/k', initrd_path: '/i' },
  };
  const back = { osImage: '/b.raw', installParameters: { kernel_path: null, initrd_path: null } };
  const steps = [
    (now: typeof before, change: typeof toMedium | typeof back) => ({
      ...now,
      ...planReinstall(now, reinstallOpcode(change), uuid),
    }),
    (now: typeof before, change: typeof toMedium | typeof back) =>
      applyChanges(now, modifyOpcode(change)),
  ];
  for (const step of steps) {
    const onMedium = step(before, toMedium);
    assert.deepEqual([onMedium.osType, onMedium.osImage], [null, null]);
    assert.deepEqual(onMedium.installParameters, toMedium.installParameters);
    const again = step(onMedium, back);
    assert.deepEqual([again.osImage, again.installParameters], ['/b.raw', {}]);
  }
});
