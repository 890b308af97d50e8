import assert from 'node:assert/strict';
import { test } from 'node:test';
import { instanceRecord as recordSchema } from '#shared/contract/instance.ts';
import { hasSeedDisk } from '../../../../noded/instances/view/cloud-init-datasource.ts';
import {
  newInstanceId,
  planReinstall,
  refuseDuplicateParameters,
} from '../../../../noded/instances/record/plan-record.ts';
import { modifyOpcode, reinstallOpcode } from '../../support/opcodes.ts';
import { instanceRecord } from '../../support/records.ts';

const uuid = (): string => 'abcdef01-0000-4000-8000-00000000ffff';

test('a new instance is a valid record with defaults, and every id is its own', () => {
  const record = instanceRecord({ nics: [{}, { mode: 'user' }] });
  recordSchema.parse(record);
  assert.equal(record.disks[0]?.sizeBytes, 10 * 1024 ** 3);
  assert.deepEqual(
    record.nics.map(({ link, mode }) => [mode, link]),
    [
      ['bridged', 'br0'],
      ['user', null],
    ],
  );
  const ids = [record.uuid, record.instanceId, ...record.disks.map((disk) => disk.uuid)];
  assert.equal(new Set(ids).size, ids.length);
  assert.deepEqual([record.adminState, record.installState], ['down', 'created']);
});

test('of secrets the record keeps the names only, of the package that it needs a password', () => {
  const record = instanceRecord({
    osParametersSecret: { b: 'SECRET', a: 'SECRET' },
    personalizationPackage: 'https://a/b.tgz',
    personalizationPassword: 'SECRET',
    personalizationUser: 'SECRET',
  });
  assert.deepEqual(record.secretNames, ['a', 'b']);
  assert.equal(record.packageNeedsPassword, true);
  assert.ok(!JSON.stringify(record).includes('SECRET'));
});

test('a diskless instance has no disk', () => {
  assert.deepEqual(instanceRecord({ diskTemplate: 'diskless' }).disks, []);
});

test('the seed disk comes with communication, as long as there is the dialect that it points at', () => {
  const hasOne = (input: Parameters<typeof instanceRecord>[0]): boolean =>
    hasSeedDisk(instanceRecord(input));
  assert.equal(hasOne({ communication: true }), true);
  assert.equal(hasOne({}), false);
  assert.equal(hasOne({ communication: true, seedDisk: false }), false);
  assert.equal(hasOne({ communication: true, dialects: ['ec2'] }), false);
  assert.throws(() => instanceRecord({ seedDisk: true, dialects: ['ec2'] }), {
    code: 'VALIDATION',
  });
});

test('two NICs with one MAC, and a MAC that is no host address, are refused by name', () => {
  const nic = (mac: string) => ({ mac, mode: 'user' as const });
  assert.throws(
    () => instanceRecord({ nics: [nic('02:00:00:00:00:01'), nic('02:00:00:00:00:01')] }),
    {
      code: 'VALIDATION',
      message: /02:00:00:00:00:01/,
    },
  );
  assert.throws(() => instanceRecord({ nics: [nic('01:00:5e:00:00:01')] }), {
    code: 'VALIDATION',
    message: /01:00:5e:00:00:01/,
  });
  instanceRecord({ nics: [{ mode: 'user' }, nic('02:00:00:00:00:02')] });
});

test('an instance for ec2 has an id that cloud-init takes for one', () => {
  assert.match(newInstanceId(uuid, ['ganeti', 'ec2']), /^ec2def01-/);
  assert.equal(newInstanceId(uuid, ['ganeti', 'nocloud', 'ec2']), uuid());
});

test('a reinstallation keeps what was stored, puts what is given over it, and has a new instance id', () => {
  const before = instanceRecord({
    osType: 'debian',
    dialects: ['nocloud'],
    osParameters: { a: '1', b: '2' },
    osParametersPrivate: { p: 'x' },
  });
  const after = planReinstall(
    before,
    reinstallOpcode({ osParameters: { b: '3' }, osParametersPrivate: { q: 'y' } }),
    uuid,
  );
  assert.deepEqual(after.osParameters, { a: '1', b: '3' });
  assert.deepEqual(after.osParametersPrivate, { p: 'x', q: 'y' });
  assert.equal(after.osType, 'debian');
  assert.equal(after.instanceId, uuid());
  assert.ok(!('uuid' in after) && !('channel' in after), 'what is for life changes');
});

test('a parameter that is given in another visibility leaves its old one', () => {
  const before = instanceRecord({
    osParameters: { pub: '1' },
    osParametersPrivate: { priv: '2' },
    osParametersSecret: { sec: '3' },
  });
  const moves = [
    { give: { osParametersPrivate: { pub: 'x' } }, expect: [[], ['priv', 'pub'], ['sec']] },
    { give: { osParametersSecret: { pub: 'x' } }, expect: [[], ['priv'], ['pub', 'sec']] },
    { give: { osParameters: { priv: 'x' } }, expect: [['priv', 'pub'], [], ['sec']] },
    { give: { osParametersSecret: { priv: 'x' } }, expect: [['pub'], [], ['priv', 'sec']] },
    { give: { osParameters: { sec: 'x' } }, expect: [['pub', 'sec'], ['priv'], []] },
    { give: { osParametersPrivate: { sec: 'x' } }, expect: [['pub'], ['priv', 'sec'], []] },
  ];
  for (const { give, expect } of moves) {
    const after = planReinstall(before, reinstallOpcode(give), uuid);
    const names = [
      Object.keys(after.osParameters).sort(),
      Object.keys(after.osParametersPrivate).sort(),
      [...after.secretNames],
    ];
    assert.deepEqual(names, expect, JSON.stringify(give));
  }
});

test('null takes a stored parameter back, a secret that is not needed any more too', () => {
  const before = instanceRecord({
    osParameters: { a: '1', b: '2' },
    osParametersPrivate: { c: '3' },
    osParametersSecret: { d: '4' },
    installParameters: { boot_order: 'cdrom', cdrom_image_path: '/a.iso' },
  });
  const opcode = reinstallOpcode({
    osParameters: { a: null, d: null },
    osParametersPrivate: { c: null, b: null },
    osParametersSecret: { d: null },
    installParameters: { boot_order: null },
  });
  const after = planReinstall(before, opcode, () => '11111111-1111-4111-8111-111111111111');
  assert.deepEqual(after.osParameters, { b: '2' });
  assert.deepEqual([after.osParametersPrivate, after.secretNames], [{}, []]);
  assert.deepEqual(after.installParameters, { cdrom_image_path: '/a.iso' });
});

test('hooks are kept in the order of their names, until a reinstallation is given others or none', () => {
  const hook = (name: string) => ({ name, content: Buffer.from(name).toString('base64') });
  const before = instanceRecord({ hooks: [hook('20-b.yaml'), hook('100-a.yaml')] });
  const namesAfter = (hooks?: ReturnType<typeof hook>[]): string[] =>
    planReinstall(before, reinstallOpcode({ ...(hooks && { hooks }) }), uuid).hooks.map(
      ({ name }) => name,
    );
  assert.deepEqual(namesAfter(), ['100-a.yaml', '20-b.yaml']);
  assert.deepEqual(namesAfter([hook('c.yaml')]), ['c.yaml']);
  assert.deepEqual(namesAfter([]), []);
  assert.throws(() => instanceRecord({ hooks: [hook('a.yaml'), hook('a.yaml')] }), {
    code: 'VALIDATION',
    message: "two hook documents have the name 'a.yaml'",
  });
  // Records from releases without hooks lack the field.
  const { hooks, ...older } = before;
  assert.equal(hooks.length, 2);
  assert.deepEqual(recordSchema.parse(older).hooks, []);
});

test('a checksum is of one image: another image without one has none', () => {
  const checksum = `sha256:${'a'.repeat(64)}`;
  const before = instanceRecord({ osImage: '/a.raw', osImageChecksum: checksum });
  assert.equal(planReinstall(before, reinstallOpcode(), uuid).osImageChecksum, checksum);
  const other = planReinstall(before, reinstallOpcode({ osImage: '/b.raw' }), uuid);
  assert.deepEqual([other.osImage, other.osImageChecksum], ['/b.raw', null]);
});

test('a parameter in two visibilities is refused by its name, without its values', () => {
  const twice = reinstallOpcode({
    osParameters: { rootpw: 'VALUE-1', other: 'VALUE-2' },
    osParametersSecret: { rootpw: 'VALUE-3' },
  });
  try {
    refuseDuplicateParameters(twice);
    assert.fail('was not refused');
  } catch (error) {
    const shown = JSON.stringify([String(error), error]);
    assert.match(shown, /DUPLICATE_OS_PARAMETER/);
    assert.match(shown, /rootpw/);
    assert.ok(!shown.includes('VALUE'), shown);
  }
});

test('a removal in one visibility and a value in another is a move, not a duplicate', () => {
  refuseDuplicateParameters(
    modifyOpcode({ osParameters: { a: null }, osParametersPrivate: { a: 'x' } }),
  );
  assert.throws(
    () =>
      refuseDuplicateParameters(
        modifyOpcode({ osParameters: { a: 'y' }, osParametersPrivate: { a: 'x' } }),
      ),
    { code: 'DUPLICATE_OS_PARAMETER' },
  );
});
