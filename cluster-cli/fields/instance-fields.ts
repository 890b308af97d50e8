import type { ListedOrphan } from '#shared/contract/api.ts';
import {
  type HypervisorKey,
  type HypervisorParameter,
  hypervisorRows,
} from '#shared/contract/parameter-keys.ts';
import type {
  InstanceInfo,
  InstanceSummary,
  InstanceSummaryField,
} from '#shared/contract/instance.ts';
import { MIB } from '#shared/units/bytes.ts';
import { type Field, fieldsOf, fieldsOfPart } from '../render/field.ts';
import type { FieldTable } from '../render/select.ts';

/**
 * A row of the list: an instance or an orphan. Ganeti's status ERROR_wrongnode is for instances on
 * the wrong node; Ganeti calls a process without a node an orphan.
 */
export type InstanceRow = InstanceInfo | OrphanRow;
/** A row for lists that need only summaries. */
export type SummaryRow = InstanceSummary | OrphanRow;
export type OrphanRow = ListedOrphan & { readonly status: 'ERROR_orphan' };

const recordOf = (row: InstanceRow): InstanceInfo | undefined =>
  row.status === 'ERROR_orphan' ? undefined : row;
const summaryOf = (row: SummaryRow): InstanceSummary | undefined =>
  row.status === 'ERROR_orphan' ? undefined : row;
const row = fieldsOf<SummaryRow>();
const told = fieldsOfPart(summaryOf);
const toldRunning = fieldsOfPart((each: SummaryRow) => {
  const instance = summaryOf(each);
  return instance?.running ? instance : undefined;
});
const { text, number, size, list } = fieldsOfPart(recordOf);
const running = fieldsOfPart((row: InstanceRow) => {
  const instance = recordOf(row);
  return instance?.running ? { ...instance, ...instance.running } : undefined;
});

const sizesMiB = (instance: InstanceInfo): readonly number[] =>
  instance.disks.map((disk) => disk.sizeBytes / MIB);

/** A column that needs no requests to the instances' nodes. */
interface SummaryField extends Field<SummaryRow> {
  /** All fields that it reads. A list requests only those. */
  readonly madeOf: readonly InstanceSummaryField[];
}

const of = (madeOf: readonly InstanceSummaryField[], field: Field<SummaryRow>): SummaryField => ({
  ...field,
  madeOf,
});

/** Columns that need only the summaries that each node has of all instances. */
export const summaryFields = {
  program: 'gnt-instance',
  defaults: ['name', 'hypervisor', 'os', 'pnode', 'status', 'oper_ram'],
  fields: [
    of(
      ['name'],
      row.text('name', 'Instance', 'Instance name', (i) => i.name),
    ),
    of(
      [],
      row.text('hypervisor', 'Hypervisor', 'Hypervisor', () => 'kvm'),
    ),
    of(
      ['osType'],
      told.text('os', 'OS', 'OS definition and variant', (i) => i.osType),
    ),
    of(
      ['primaryNode'],
      row.text('pnode', 'Primary_node', 'Primary node', (i) =>
        i.status === 'ERROR_orphan' ? i.node : i.primaryNode,
      ),
    ),
    of(
      ['status'],
      row.text('status', 'Status', 'State of the instance', (i) => i.status),
    ),
    of(
      ['running', 'beparams'],
      toldRunning.size(
        'oper_ram',
        'Memory',
        'Memory in use by the running instance',
        (i) => i.beparams.memoryMiB,
      ),
    ),
    of(
      ['running', 'beparams'],
      toldRunning.number(
        'oper_vcpus',
        'VCPUs',
        'Virtual CPUs of the running instance',
        (i) => i.beparams.vcpus,
      ),
    ),
    of(
      ['running'],
      row.boolean(
        'oper_state',
        'Running',
        'Whether the instance runs',
        (i) => i.status === 'ERROR_orphan' || i.running !== null,
      ),
    ),
    of(
      ['adminState'],
      told.text(
        'admin_state',
        'InstanceState',
        'Configured state: up or down',
        (i) => i.adminState,
      ),
    ),
    of(
      ['installState'],
      told.text(
        'install_state',
        'Install',
        'created, installing, installed or failed',
        (i) => i.installState,
      ),
    ),
    of(
      ['running'],
      toldRunning.text(
        'paused',
        'Paused',
        'Reason why the guest is paused',
        (i) => i.running?.halt?.reason,
      ),
    ),
    of(
      ['running'],
      toldRunning.list(
        'lost_secrets',
        'Lost_secrets',
        'Secrets that the running guest cannot read, since their values are lost',
        (i) => i.running?.lostSecrets,
      ),
    ),
    of(
      ['running'],
      toldRunning.text(
        'accelerator',
        'Accel',
        'Accelerator in use: kvm or tcg',
        (i) => i.running?.accelerator,
      ),
    ),
    of(
      ['running'],
      row.number('pid', 'PID', 'Id of the QEMU process', (i) =>
        i.status === 'ERROR_orphan' ? i.pid : i.running?.pid,
      ),
    ),
    of(
      ['beparams'],
      told.size('be/memory', 'ConfigMemory', 'Configured memory', (i) => i.beparams.memoryMiB),
    ),
    of(
      ['beparams'],
      told.size('be/maxmem', 'ConfigMaxMem', 'Same as be/memory', (i) => i.beparams.memoryMiB),
    ),
    of(
      ['beparams'],
      told.size('be/minmem', 'ConfigMinMem', 'Same as be/memory', (i) => i.beparams.memoryMiB),
    ),
    of(
      ['beparams'],
      told.number('be/vcpus', 'ConfigVCPUs', 'Configured virtual CPUs', (i) => i.beparams.vcpus),
    ),
    of(
      ['diskTemplate'],
      told.text(
        'disk_template',
        'Disk_template',
        'file, sharedfile, plain, zfs or diskless',
        (i) => i.diskTemplate,
      ),
    ),
    of(
      ['communication'],
      told.boolean(
        'communication',
        'Channel',
        'Whether the channel is on in normal runs',
        (i) => i.communication,
      ),
    ),
    of(
      ['running'],
      toldRunning.text(
        'channel.tap',
        'Channel_TAP',
        'TAP device of the running instance',
        (i) => i.running?.tap,
      ),
    ),
    of(
      ['tags'],
      told.list('tags', 'Tags', 'Tags', (i) => i.tags),
    ),
    of(
      ['uuid'],
      row.text('uuid', 'InstanceUUID', 'UUID; never changes', (i) => i.uuid),
    ),
    of(
      ['serialNo'],
      told.number('serial_no', 'SerialNo', 'Number of changes', (i) => i.serialNo),
    ),
    of(
      ['createdAtMs'],
      told.time('ctime', 'CTime', 'Time of creation', (i) => i.createdAtMs),
    ),
    of(
      ['modifiedAtMs'],
      told.time('mtime', 'MTime', 'Time of the last change', (i) => i.modifiedAtMs),
    ),
  ],
} as const satisfies FieldTable<SummaryRow>;

function hypervisorField(
  key: HypervisorKey,
  description: string,
  { type, default: usual }: HypervisorParameter,
): Field<InstanceRow> {
  const name = `hv/${key}`;
  return text(name, name, description, (i) => i.hvparams[key] ?? ('words' in type ? usual : null));
}

/** Columns of `gnt-instance list`, with Ganeti's names and titles if it has them. */
export const instanceFields: FieldTable<InstanceRow> = {
  program: 'gnt-instance',
  defaults: summaryFields.defaults,
  fields: [
    ...summaryFields.fields,
    text(
      'install_error',
      'Install_error',
      'Error code of the last installation',
      (i) => i.install?.error?.code,
    ),
    running.boolean(
      'ready',
      'Ready',
      'Whether the guest reported that it is ready',
      (i) => i.readyAtMs !== null,
    ),
    text(
      'boot',
      'Boot',
      'State of cloud-init in this boot: running, done, degraded or error',
      (i) => i.boot?.status,
    ),
    text('boot_stage', 'Boot_stage', 'Stage of cloud-init', (i) => i.boot?.stage),
    text(
      'lifecycle',
      'Lifecycle',
      'State of the run lists: booting, operational, stranded, decommissioning, decommissioned or failed',
      (i) => lifecycleOf(i)?.state,
    ),
    text(
      'lifecycle_reason',
      'Lifecycle_reason',
      'Reason for stranded, failed or decommissioned, or for a silent agent',
      (i) => lifecycleOf(i)?.reason,
    ),
    ...hypervisorRows.flatMap(([key, row]) =>
      row.listed === undefined ? [] : [hypervisorField(key, row.listed, row)],
    ),
    number('disk.count', 'Disks', 'Number of disks', (i) => i.disks.length),
    size('disk.sizes', 'Disk_sizes', 'Sizes of the disks', sizesMiB),
    list('disk.names', 'Disk_names', 'Names of the disks', (i) =>
      i.disks.map((d) => d.name ?? '-'),
    ),
    list('disk.uuids', 'Disk_UUIDs', 'UUIDs of the disks', (i) => i.disks.map((d) => d.uuid)),
    size('disk_usage', 'DiskUsage', 'Sum of the sizes of the disks', (i) =>
      sizesMiB(i).reduce((sum, size) => sum + size, 0),
    ),
    number('nic.count', 'NICs', 'Number of NICs, without the channel', (i) => i.nics.length),
    list('nic.macs', 'NIC_MACs', 'MAC addresses', (i) => i.nics.map((n) => n.mac)),
    list('nic.ips', 'NIC_IPs', 'IP addresses', (i) => i.nics.map((n) => n.ip ?? '-')),
    list('nic.modes', 'NIC_modes', 'Modes of the NICs: bridged or user', (i) =>
      i.nics.map((n) => n.mode),
    ),
    list('nic.networks.names', 'NIC_networks_names', 'Networks of the NICs', (i) =>
      i.nics.map((n) => n.networkName ?? '-'),
    ),
    list('nic.links', 'NIC_links', 'Bridges', (i) => i.nics.map((n) => n.link ?? '-')),
    list('nic.names', 'NIC_Names', 'Names of the NICs', (i) => i.nics.map((n) => n.name ?? '-')),
    text('channel.ip', 'Channel_IP', 'Address of the guest on the channel', (i) => i.channel.ip),
    text('channel.mac', 'Channel_MAC', 'MAC address on the channel', (i) => i.channel.mac),
    list('dialects', 'Dialects', 'Served metadata dialects', (i) => i.dialects),
    text('metadata_token', 'Token', 'Policy for session tokens', (i) => i.metadataToken),
    text(
      'datasource',
      'Datasource',
      'Datasource that cloud-init will use',
      (i) => i.cloudInit.datasource,
    ),
    text('os_image', 'OS_image', 'Image of the last installation', (i) => i.osImage),
    list('profiles', 'Profiles', 'Profiles of OS parameters', (i) => i.profiles),
    list('secrets', 'Secrets', 'Names of the secret OS parameters', (i) => i.secretNames),
    text(
      'instance_id',
      'InstanceID',
      'Id of this installation, for the guest',
      (i) => i.instanceId,
    ),
  ],
  indexed: [
    {
      prefix: 'disk.size',
      description: 'Size of disk N',
      at: (n) => size(`disk.size/${n}`, `Disk/${n}`, `Size of disk ${n}`, (i) => sizesMiB(i)[n]),
    },
    {
      prefix: 'nic.mac',
      description: 'MAC address of NIC N',
      at: (n) =>
        text(`nic.mac/${n}`, `NicMAC/${n}`, `MAC address of NIC ${n}`, (i) => i.nics[n]?.mac),
    },
    {
      prefix: 'nic.ip',
      description: 'IP address of NIC N',
      at: (n) => text(`nic.ip/${n}`, `NicIP/${n}`, `IP address of NIC ${n}`, (i) => i.nics[n]?.ip),
    },
    {
      prefix: 'nic.link',
      description: 'Bridge of NIC N',
      at: (n) =>
        text(`nic.link/${n}`, `NicLink/${n}`, `Bridge of NIC ${n}`, (i) => i.nics[n]?.link),
    },
  ],
};

/**
 * Returns the state in one vocabulary, for guests with run lists and for those with cloud-init
 * only.
 */
function lifecycleOf({
  lifecycle,
  boot,
}: Pick<InstanceInfo, 'lifecycle' | 'boot'>): { state: string; reason: string | null } | null {
  if (lifecycle != null) {
    const { state, kind, reason } = lifecycle;
    return { state, reason: reason ?? kind };
  }
  if (boot === null) return null;
  if (boot.status === 'error') return { state: 'stranded', reason: boot.errors[0] ?? null };
  return { state: boot.status === 'running' ? 'booting' : 'operational', reason: null };
}
