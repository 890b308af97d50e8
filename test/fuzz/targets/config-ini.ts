import assert from 'node:assert/strict';
import { formatExportRecord, parseExportRecord } from '../../../noded/backup/export-record.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import { mutate } from '../mutate.ts';
import { assertRefusal, openPure, type Target } from '../target.ts';

const OURS = formatExportRecord({
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
});
const GANETIS = `[export]
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

/**
 * An export's config.ini: refused, or a record that is the same when it is written and read again.
 */
export function configIniTarget(parse: typeof parseExportRecord = parseExportRecord): Target {
  return { name: 'config-ini', generate, open: () => openPure((input) => check(input, parse)) };
}

function generate(random: SeededRandom): Buffer {
  const bytes = Buffer.from(random.pick([OURS, GANETIS]));
  if (random.below(3) > 0) return mutate(bytes, random);
  // The order of lines, of which some mean something to the next one.
  const lines = bytes.toString().split('\n');
  const at = random.below(lines.length);
  lines.splice(random.below(lines.length), 0, ...lines.splice(at, 1 + random.below(3)));
  return mutate(Buffer.from(lines.join('\n')), random);
}

function check(input: Buffer, parse: typeof parseExportRecord): void {
  let record: ReturnType<typeof parseExportRecord>;
  try {
    record = parse(input.toString());
  } catch (error) {
    assertRefusal(error, ['EXPORT_INVALID']);
    return;
  }
  for (const { dump, sizeBytes } of record.disks) {
    assert.ok(dump === null || !/[/\0]|^\.\.?$/.test(dump), 'a dump outside of its directory');
    assert.ok(Number.isSafeInteger(sizeBytes), `a disk of ${sizeBytes} bytes`);
  }
  assert.deepEqual(parse(formatExportRecord(record)), {
    ...record,
    // The file has seconds.
    createdAtMs: Math.floor(record.createdAtMs / 1000) * 1000,
  });
}
