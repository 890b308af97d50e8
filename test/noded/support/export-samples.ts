/** What our own exports say, with values that are hard to write. */
export const OUR_EXPORT = {
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
  profiles: ['web', 'base'],
  whole: null,
};
/** What Ganeti's FinalizeExport writes. */
export const GANETI_EXPORT = `[export]
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
