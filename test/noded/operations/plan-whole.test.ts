import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { keepRecord } from '../../../noded/instances/backup/export-record.ts';
import { planWhole } from '../../../noded/operations/plan-whole.ts';
import { OUR_EXPORT } from '../support/export-samples.ts';
import { createOpcode } from '../support/opcodes.ts';
import { countingUuids, instanceRecord } from '../support/records.ts';

/** Plans an import of an export with these settings, made here or elsewhere. */
function plan(
  overrides: Partial<InstanceRecord>,
  isOwn: boolean,
  given: Parameters<typeof createOpcode>[0] = {},
) {
  const instance = keepRecord({
    ...instanceRecord({ disks: [{ sizeBytes: 2 ** 20 }] }, overrides),
    installState: 'installed',
  });
  const dumps = instance.disks.map((_, disk) => ({ disk, path: `/disk${disk}`, sizeBytes: 1 }));
  const disks = instance.disks.map((disk) => ({ ...disk, dump: 'disk0.raw.zst' }));
  return planWhole(
    createOpcode({ name: 'new.example.com', importFrom: '/srv/export', ...given }),
    { record: { ...OUR_EXPORT, disks }, dumps, path: '/srv/export', isOwn },
    { instance, takenBytes: 0, variables: null },
    {
      nodeName: 'node1.example.com',
      newUuid: countingUuids(),
      newMac: () => 'aa:00:00:00:00:01',
    },
  );
}

function namedBy(source: string, isOwn: boolean) {
  const files = { kernel_path: source, initrd_path: source, cdrom_image_path: source };
  const planned = plan(
    {
      hvparams: { ...instanceRecord().hvparams, ...files },
      installParameters: files,
      osImage: source,
      personalizationPackage: source,
    },
    isOwn,
  );
  const { hvparams, installParameters, osImage, personalizationPackage } = planned;
  const pick = ({ kernel_path, initrd_path, cdrom_image_path }: typeof installParameters) =>
    [kernel_path, initrd_path, cdrom_image_path] as const;
  return [...pick(hvparams), ...pick(installParameters), osImage, personalizationPackage];
}

test('an export from elsewhere names no file of this host, by no kind of path', () => {
  for (const path of ['/etc/shadow', '../../../etc/passwd', 'file:///etc/shadow', 'Etc/shadow']) {
    const named = namedBy(path, false).filter((each) => each != null);
    assert.deepEqual(named, [], path);
    assert.ok(namedBy(path, true).every((each) => each === path));
  }
});

test('a URL of an export from elsewhere has the reach of a remote user’s', () => {
  const url = 'http://127.0.0.1:8080/x';
  for (const given of [url, `${url}#x`, `${url}#remote`]) {
    const marked = `${url}#remote`;
    const media = [undefined, undefined, marked];
    assert.deepEqual(namedBy(given, false), [...media, ...media, marked, marked]);
    assert.ok(namedBy(given, true).every((each) => each === given));
  }
  const tooLong = `http://example.com/${'a'.repeat(4075)}`;
  assert.ok(namedBy(tooLong, false).every((each) => each == null));
});

test('the name of an image is of the operator’s catalogue, and stays', () => {
  assert.equal(plan({ osImage: 'debian/12' }, false).osImage, 'debian/12');
});

const OLD_MAC = 'aa:00:00:00:00:99';
const NIC = { mac: OLD_MAC, mode: 'bridged' as const, link: 'br0' };
for (const [what, given, expected] of [
  ['are as exported, with another MAC', {}, [['bridged', 'br0', 'aa:00:00:00:00:01']]],
  ['keep their MAC under the old name', { name: OUR_EXPORT.name }, [['bridged', 'br0', OLD_MAC]]],
  [
    'are the given ones',
    { nics: [{ mac: 'aa:00:00:00:00:02', mode: 'user' as const }] },
    [['user', null, 'aa:00:00:00:00:02']],
  ],
] as const) {
  test(`the NICs of an imported instance ${what}`, () => {
    const { nics } = instanceRecord({ nics: [NIC] });
    const planned = plan({ nics }, true, given as Parameters<typeof createOpcode>[0]).nics;
    assert.deepEqual(
      planned.map(({ mode, link, mac }) => [mode, link, mac]),
      expected,
    );
    assert.notEqual(planned[0]?.uuid, nics[0]?.uuid);
  });
}

test('an import takes tags, backend parameters and a time limit in place of the exported ones', () => {
  const exported = { tags: ['old'], installTimeoutS: 5 };
  const kept = plan(exported, true);
  assert.deepEqual([kept.tags, kept.installTimeoutS], [['old'], 5]);
  const given = { tags: ['new'], beparams: { vcpus: 3 }, installTimeoutS: 60 };
  const { tags, beparams, installTimeoutS } = plan(exported, true, given);
  assert.deepEqual([tags, installTimeoutS], [['new'], 60]);
  assert.deepEqual(beparams, { ...kept.beparams, vcpus: 3 });
});

test('an import of whole disks refuses settings that the disks were made with', () => {
  assert.throws(() => plan({}, true, { communication: true }), { code: 'VALIDATION' });
});

test('an import of whole disks is refused when a dump is missing', () => {
  const disks = instanceRecord({ disks: [{ sizeBytes: 512 }, { sizeBytes: 512 }] });
  const context = { nodeName: 'n', newUuid: countingUuids(), newMac: () => OLD_MAC };
  const instance = keepRecord({ ...disks, installState: 'installed' });
  assert.throws(
    () =>
      planWhole(
        createOpcode({ importFrom: '/srv/export' }),
        { record: OUR_EXPORT, dumps: [], path: '/srv/export', isOwn: true },
        { instance, takenBytes: 0, variables: null },
        context,
      ),
    {
      code: 'EXPORT_INVALID',
      message: 'the export in /srv/export is incomplete: disks are missing',
    },
  );
});
