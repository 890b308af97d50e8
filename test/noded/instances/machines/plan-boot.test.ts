import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { installationParameters } from '../../../../noded/instances/parameters/installation-parameters.ts';
import {
  hasMedium,
  planUefi,
  refuseImageAndMedium,
  refuseUnbootable,
} from '../../../../noded/instances/machines/plan-boot.ts';
import { instanceRecord } from '../../support/records.ts';

type Parameters = InstanceRecord['hvparams'];

function instanceWith(installParameters: Parameters, own: object = {}): InstanceRecord {
  return instanceRecord({ installParameters, ...own });
}

function assertRefused(instance: InstanceRecord, message: RegExp): void {
  assert.throws(
    () => refuseUnbootable(instance),
    (error) => isAppError(error, 'VALIDATION') && message.test(`${error.message} ${error.hint}`),
  );
}

test('refuses by name what is no medium, or would never boot', () => {
  assertRefused(instanceWith({ boot_order: 'floppy,disk' }), /floppies are not supported/);
  assertRefused(instanceWith({ boot_order: 'tape' }), /'tape' is not disk, cdrom or network/);
  assertRefused(instanceWith({ boot_order: 'cdrom:disk' }), /no cdrom_image_path/);
  assertRefused(instanceWith({ boot_order: 'disk' }), /names no installation medium/);
  assertRefused(instanceWith({ kernel_args: 'auto' }), /need a kernel_path/);
  assertRefused(instanceWith({ initrd_path: '/srv/initrd' }), /need a kernel_path/);
  assertRefused(
    instanceWith({ kernel_path: 'http://a/linux' }),
    /'http:\/\/a\/linux' is not an abs/,
  );
  assertRefused(
    instanceWith({ cdrom_image_path: 'a.iso' }),
    /'a\.iso' is neither an absolute path/,
  );
  const both = { kernel_path: '/srv/linux', boot_order: 'cdrom' };
  assertRefused(instanceWith(both), /a kernel_path excludes every other way to boot/);
});

test('a network boots through a bridged NIC alone: none, the channel and user-mode ones do not', () => {
  const network = { boot_order: 'network' };
  assertRefused(
    instanceWith(network),
    /boot_order=network: the instance has no NIC .*mode=bridged/,
  );
  const user = { nics: [{ mode: 'user' as const }] };
  assertRefused(instanceWith(network, user), /mode=user NIC finds no PXE server/);
  assertRefused(instanceRecord({ ...user, hvparams: network }), /no NIC/);
  refuseUnbootable(instanceWith(network, { nics: [{ mode: 'user' }, { link: 'br0' }] }));
});

test('takes a cdrom by path or URL for installations, by path in normal runs', () => {
  refuseUnbootable(instanceWith({ cdrom_image_path: '/srv/a.iso' }));
  refuseUnbootable(instanceWith({ cdrom_image_path: 'https://a/b.iso' }));
  refuseUnbootable(instanceWith({ kernel_path: '/srv/linux', kernel_args: 'auto' }));
  refuseUnbootable(instanceRecord({ hvparams: { cdrom_image_path: '/srv/a.iso' } }));
  const byUrl = instanceRecord({ hvparams: { cdrom_image_path: 'https://a/b.iso' } });
  assertRefused(byUrl, /Only --install-parameters accepts a URL./);
});

test('a medium is what installations boot from alone, in place of the kernel of normal runs', () => {
  const hvparams = { kernel_path: '/srv/own', kernel_args: 'quiet', cdrom_image_path: '/srv/cd' };
  const instance = instanceWith({ boot_order: 'cdrom,disk' }, { hvparams });
  refuseUnbootable(instance);
  assert.deepEqual(installationParameters(instance), {
    boot_order: 'cdrom,disk',
    cdrom_image_path: '/srv/cd',
  });
  assert.equal(hasMedium(instance), true);
  assert.equal(
    hasMedium(instanceWith({ accel: 'tcg', metadata_hop_limit: 2 }, { hvparams })),
    false,
  );
});

test('UEFI has variables of the machine, and a kernel that QEMU loads needs no firmware', () => {
  assert.deepEqual(planUefi({ firmware: 'uefi' }, '/v'), { variablesPath: '/v' });
  assert.equal(planUefi({ firmware: 'uefi', kernel_path: '/k' }, '/v'), undefined);
  assert.equal(planUefi({ firmware: 'bios' }, '/v'), undefined);
  assert.equal(planUefi({}, '/v'), undefined);
});

test('an image beside a medium is refused with what takes either of them back', () => {
  const medium = { installParameters: { cdrom_image_path: '/srv/a.iso' } };
  for (const own of [medium, { bootEnv: 'debian-install' }]) {
    assert.throws(() => refuseImageAndMedium(instanceRecord({ ...own, osImage: '/a.raw' })), {
      code: 'VALIDATION',
      hint: /--os-image none.*--install-parameters none.*--bootenv none/,
    });
    refuseImageAndMedium({ ...instanceRecord(own), osImage: null });
  }
});
