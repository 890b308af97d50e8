import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fc } from '../../lab/fast-check.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { formatExportRecord, parseExportRecord } from '../../../noded/backup/export-record.ts';
import { formatIni, parseIni } from '../../../noded/backup/ini.ts';

const record = {
  name: 'web1.example.com',
  node: 'node1.example.com',
  createdAtMs: 1_790_000_000_000,
  osType: 'debootstrap+default',
  beparams: { memoryMiB: 512, vcpus: 2 },
  disks: [
    { name: 'root', sizeBytes: 10 * 1024 ** 3, dump: 'disk0.snap' },
    { name: null, sizeBytes: 1024 ** 3, dump: null },
  ],
  nics: [
    { mac: '02:00:00:12:34:56', mode: 'bridged', link: 'br0', name: null, ip: null, network: null },
  ],
  osParameters: { motd: 'one\n  two: [x]\n\n four = 4 ', empty: '' },
  osParametersPrivate: { key: '100% [sure]; #1' },
  tags: ['db', 'prod'],
};

test('what an export says is read back as it was', () => {
  assert.deepEqual(parseExportRecord(formatExportRecord(record)), record);
});

test("reads what Ganeti's FinalizeExport writes", () => {
  const text = `[export]
version = 0
timestamp = 1700000000
source = node1.example.org
os = debootstrap+default
compression = none

[instance]
name = inst1.example.org
maxmem = 1024
minmem = 512
vcpus = 2
disk_template = plain
hypervisor = kvm
nic0_name = None
nic0_mac = aa:00:00:11:22:33
nic0_ip = None
nic0_network = None
nic0_netinfo =
nic0_mode = bridged
nic0_link = xen-br0
nic_count = 1
disk0_ivname = disk/0
disk0_dump = 0a1b2c3d-1111-2222-3333-444455556666
disk0_size = 10240
disk0_name = None
disk_count = 1
tags =

[hypervisor]
kernel_path =

[backend]
auto_balance = True

[os]
dhcp = yes

[os_private]
`;
  const read = parseExportRecord(text);
  assert.deepEqual(read.beparams, { memoryMiB: 1024, vcpus: 2 });
  assert.deepEqual(read.disks, [
    { name: null, sizeBytes: 10 * 1024 ** 3, dump: '0a1b2c3d-1111-2222-3333-444455556666' },
  ]);
  assert.deepEqual(read.osParameters, { dhcp: 'yes' });
});

for (const [what, change] of [
  ['a dump outside of its directory', ['disk0.snap', '../../etc/shadow']],
  ['a dump that is a path', ['disk0.snap', '/etc/shadow']],
  ['more disks than there can be', ['disk_count = 2', 'disk_count = 20000000']],
  ['another version', ['version = 0', 'version = 9']],
  ['a name that is a path', ['name = web1.example.com', 'name = ../web1']],
  ['a line that is neither', ['[backend]', 'what is this']],
] as const) {
  test(`refuses ${what}`, () => {
    const [from, to] = change;
    const text = formatExportRecord(record).replace(from, to);
    assert.notEqual(text, formatExportRecord(record));
    assert.throws(
      () => parseExportRecord(text),
      (error) => isAppError(error, 'EXPORT_INVALID'),
    );
  });
}

test('any value comes back from the file format', () => {
  // Python's parser, too, takes spaces at the ends of a line away.
  const line = fc.string({ unit: 'grapheme-ascii' }).map((text) => text.trim());
  const value = fc.array(line, { minLength: 1, maxLength: 4 }).map((lines) => lines.join('\n'));
  fc.assert(
    fc.property(
      fc.dictionary(fc.stringMatching(/^[a-z][a-z0-9_-]{0,20}$/), value, { noNullPrototype: true }),
      (values) => {
        assert.deepEqual(parseIni(formatIni({ os: values }))['os'] ?? {}, values);
      },
    ),
  );
});
