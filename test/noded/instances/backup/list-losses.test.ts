import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatExportRecord } from '../../../../noded/instances/backup/export-record.ts';
import { listLosses } from '../../../../noded/instances/backup/list-losses.ts';
import { GANETI_EXPORT, OUR_EXPORT } from '../../support/export-samples.ts';

test('an export of this daemon loses nothing', () => {
  assert.deepEqual(listLosses(formatExportRecord(OUR_EXPORT)), []);
  const older = 'nic0_network = {"address":"192.0.2.7/24"}\nnic0_mode = user\n';
  assert.deepEqual(listLosses(`[instance]\n${older}`), []);
});

test('each part of an export of Ganeti that has no counterpart is a loss', () => {
  const text = GANETI_EXPORT.replace('disk_template = plain', 'disk_template = drbd')
    .replace('hypervisor = kvm', 'hypervisor = xen-pvm')
    .replace('kernel_path =', 'kernel_path = /boot/vmlinuz\nacpi = True\nvnc_password_file = None')
    .replace('nic0_mode = bridged', 'nic0_mode = openvswitch\nnic0_vlan = .10')
    .replace('nic0_network = None', 'nic0_network = 4a5b');
  assert.deepEqual(listLosses(text), [
    'disk template drbd: the disks become files, without a secondary node',
    'hypervisor xen-pvm: the instance runs under KVM',
    'hypervisor parameters: kernel_path, acpi',
    'backend parameters: auto_balance',
    'minmem 512: the instance always has 1024 MiB',
    'network 4a5b of NIC 0: it is bridged',
    'mode openvswitch of NIC 0: define the NICs of the instance with --net',
    'VLAN .10 of NIC 0',
  ]);
});
