import type { InstanceInfo } from '#shared/contract/instance.ts';
import type { Field, FieldKind, FieldValue } from '../render/field.ts';
import type { FieldTable } from '../render/select.ts';

const BYTES_PER_MIB = 1024 * 1024;

function field(
  name: string,
  title: string,
  kind: FieldKind,
  description: string,
  get: (instance: InstanceInfo) => FieldValue,
): Field<InstanceInfo> {
  return { name, title, kind, description, get };
}

const sizesMiB = (instance: InstanceInfo): readonly number[] =>
  instance.disks.map((disk) => disk.sizeBytes / BYTES_PER_MIB);

/** Columns of `gnt-instance list`; names and titles are Ganeti's where it has them. */
export const instanceFields: FieldTable<InstanceInfo> = {
  defaults: ['name', 'hypervisor', 'os', 'pnode', 'status', 'oper_ram'],
  fields: [
    field('name', 'Instance', 'text', 'Instance name', (i) => i.name),
    field('hypervisor', 'Hypervisor', 'text', 'Hypervisor', () => 'kvm'),
    field('os', 'OS', 'text', 'OS definition and variant', (i) => i.osType),
    field('pnode', 'Primary_node', 'text', 'Primary node', (i) => i.primaryNode),
    field('status', 'Status', 'text', 'State of the instance', (i) => i.status),
    field('oper_ram', 'Memory', 'size', 'Memory in use by the running instance', (i) =>
      i.running ? i.beparams.memoryMiB : null,
    ),
    field('oper_vcpus', 'VCPUs', 'number', 'Virtual CPUs of the running instance', (i) =>
      i.running ? i.beparams.vcpus : null,
    ),
    field('oper_state', 'Running', 'boolean', 'Whether it runs', (i) => i.running !== null),
    field(
      'admin_state',
      'InstanceState',
      'text',
      'What it should be: up or down',
      (i) => i.adminState,
    ),
    field(
      'install_state',
      'Install',
      'text',
      'created, installing, installed or failed',
      (i) => i.installState,
    ),
    field(
      'install_error',
      'Install_error',
      'text',
      'Error code of the last installation',
      (i) => i.install?.error?.code ?? null,
    ),
    field('ready', 'Ready', 'boolean', 'Whether the guest said that it is up', (i) =>
      i.running ? i.running.readyAtMs !== null : null,
    ),
    field(
      'accelerator',
      'Accel',
      'text',
      'kvm or tcg, as it runs',
      (i) => i.running?.accelerator ?? null,
    ),
    field('pid', 'PID', 'number', 'Process of the virtual machine', (i) => i.running?.pid ?? null),
    field('be/memory', 'ConfigMemory', 'size', 'Configured memory', (i) => i.beparams.memoryMiB),
    field(
      'be/maxmem',
      'ConfigMaxMem',
      'size',
      'The same as be/memory',
      (i) => i.beparams.memoryMiB,
    ),
    field(
      'be/minmem',
      'ConfigMinMem',
      'size',
      'The same as be/memory',
      (i) => i.beparams.memoryMiB,
    ),
    field('be/vcpus', 'ConfigVCPUs', 'number', 'Configured virtual CPUs', (i) => i.beparams.vcpus),
    field(
      'hv/accel',
      'hv/accel',
      'text',
      'Configured acceleration',
      (i) => i.hvparams.accel ?? 'auto',
    ),
    field(
      'hv/boot_order',
      'hv/boot_order',
      'text',
      'Boot order',
      (i) => i.hvparams.boot_order ?? null,
    ),
    field(
      'hv/cdrom_image_path',
      'hv/cdrom_image_path',
      'text',
      'CD-ROM image',
      (i) => i.hvparams.cdrom_image_path ?? null,
    ),
    field(
      'hv/kernel_path',
      'hv/kernel_path',
      'text',
      'Kernel',
      (i) => i.hvparams.kernel_path ?? null,
    ),
    field(
      'hv/initrd_path',
      'hv/initrd_path',
      'text',
      'Initial RAM disk',
      (i) => i.hvparams.initrd_path ?? null,
    ),
    field(
      'hv/kernel_args',
      'hv/kernel_args',
      'text',
      'Kernel command line',
      (i) => i.hvparams.kernel_args ?? null,
    ),
    field('disk_template', 'Disk_template', 'text', 'file or diskless', (i) => i.diskTemplate),
    field('disk.count', 'Disks', 'number', 'Number of disks', (i) => i.disks.length),
    field('disk.sizes', 'Disk_sizes', 'size', 'Sizes of the disks', sizesMiB),
    field('disk.names', 'Disk_names', 'list', 'Names of the disks', (i) =>
      i.disks.map((d) => d.name ?? '-'),
    ),
    field('disk.uuids', 'Disk_UUIDs', 'list', 'UUIDs of the disks', (i) =>
      i.disks.map((d) => d.uuid),
    ),
    field('disk_usage', 'DiskUsage', 'size', 'Sum of the sizes of the disks', (i) =>
      sizesMiB(i).reduce((sum, size) => sum + size, 0),
    ),
    field(
      'nic.count',
      'NICs',
      'number',
      'Network cards, without the channel',
      (i) => i.nics.length,
    ),
    field('nic.macs', 'NIC_MACs', 'list', 'MAC addresses', (i) => i.nics.map((n) => n.mac)),
    field('nic.ips', 'NIC_IPs', 'list', 'IP addresses', (i) => i.nics.map((n) => n.ip ?? '-')),
    field('nic.modes', 'NIC_modes', 'list', 'bridged or user', (i) => i.nics.map((n) => n.mode)),
    field('nic.links', 'NIC_links', 'list', 'Bridges', (i) => i.nics.map((n) => n.link ?? '-')),
    field('nic.names', 'NIC_Names', 'list', 'Names of the cards', (i) =>
      i.nics.map((n) => n.name ?? '-'),
    ),
    field(
      'communication',
      'Channel',
      'boolean',
      'Whether the channel is on in normal runs',
      (i) => i.communication,
    ),
    field(
      'channel.ip',
      'Channel_IP',
      'text',
      'Address of the guest on the channel',
      (i) => i.channel.ip,
    ),
    field('channel.mac', 'Channel_MAC', 'text', 'MAC address on the channel', (i) => i.channel.mac),
    field(
      'channel.tap',
      'Channel_TAP',
      'text',
      'TAP device of the running instance',
      (i) => i.running?.tap ?? null,
    ),
    field('dialects', 'Dialects', 'list', 'Metadata dialects that are served', (i) => i.dialects),
    field('metadata_token', 'Token', 'text', 'Policy for session tokens', (i) => i.metadataToken),
    field(
      'datasource',
      'Datasource',
      'text',
      'What a stock cloud-init will use',
      (i) => i.cloudInit.datasource,
    ),
    field('os_image', 'OS_image', 'text', 'Image of the last installation', (i) => i.osImage),
    field('secrets', 'Secrets', 'list', 'Names of the secret OS parameters', (i) => i.secretNames),
    field('tags', 'Tags', 'list', 'Tags', (i) => i.tags),
    field('uuid', 'InstanceUUID', 'text', 'UUID, for life', (i) => i.uuid),
    field(
      'instance_id',
      'InstanceID',
      'text',
      'Id of this installation, as guests see it',
      (i) => i.instanceId,
    ),
    field('serial_no', 'SerialNo', 'number', 'Number of changes', (i) => i.serialNo),
    field('ctime', 'CTime', 'time', 'When it was added', (i) => i.createdAtMs),
    field('mtime', 'MTime', 'time', 'When it was changed last', (i) => i.modifiedAtMs),
  ],
  indexed: [
    {
      prefix: 'disk.size',
      description: 'Size of disk N',
      at: (n) =>
        field(
          `disk.size/${n}`,
          `Disk/${n}`,
          'size',
          `Size of disk ${n}`,
          (i) => sizesMiB(i)[n] ?? null,
        ),
    },
    {
      prefix: 'nic.mac',
      description: 'MAC address of card N',
      at: (n) =>
        field(
          `nic.mac/${n}`,
          `NicMAC/${n}`,
          'text',
          `MAC address of card ${n}`,
          (i) => i.nics[n]?.mac ?? null,
        ),
    },
    {
      prefix: 'nic.ip',
      description: 'IP address of card N',
      at: (n) =>
        field(
          `nic.ip/${n}`,
          `NicIP/${n}`,
          'text',
          `IP address of card ${n}`,
          (i) => i.nics[n]?.ip ?? null,
        ),
    },
    {
      prefix: 'nic.link',
      description: 'Bridge of card N',
      at: (n) =>
        field(
          `nic.link/${n}`,
          `NicLink/${n}`,
          'text',
          `Bridge of card ${n}`,
          (i) => i.nics[n]?.link ?? null,
        ),
    },
  ],
};
