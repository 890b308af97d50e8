import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { keepRecord } from '../../../noded/instances/backup/export-record.ts';
import { planWhole } from '../../../noded/operations/plan-whole.ts';
import { OUR_EXPORT } from '../support/export-samples.ts';
import { createOpcode } from '../support/opcodes.ts';
import { countingUuids, instanceRecord } from '../support/records.ts';

/** Of an export with these settings, made here or elsewhere. */
function plan(overrides: Partial<InstanceRecord>, isOwn: boolean) {
  const instance = keepRecord({
    ...instanceRecord({ disks: [{ sizeBytes: 2 ** 20 }] }, overrides),
    installState: 'installed',
  });
  const dumps = instance.disks.map((_, disk) => ({ disk, path: `/disk${disk}`, sizeBytes: 1 }));
  const disks = instance.disks.map((disk) => ({ ...disk, dump: 'disk0.raw.zst' }));
  return planWhole(
    createOpcode({ name: 'new.example.com', importFrom: '/srv/export' }),
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
