import type { InstanceInfo, InstanceStatus } from '#shared/contract/instance.ts';
import { fieldsOf, fieldsOfPart, toMiB, toSeconds, type Field, type Fields } from './fields.ts';

interface Nic {
  readonly name: string | null;
  readonly uuid: string;
  readonly ip: string | null;
  readonly mac: string;
  readonly mode: string;
  readonly link: string | null;
  readonly networkName?: string | undefined;
}

/** Returns the NICs with the channel's as the last one, named as in Ganeti. */
export function nicsOf(instance: InstanceInfo): readonly Nic[] {
  const { channel, communication, name } = instance;
  if (!communication) return instance.nics;
  const { ip, mac, uuid } = channel;
  const link = 'communication_rt';
  const nic = { name: `ganeti:communication:${name}`, uuid, ip, mac, mode: 'routed', link };
  return [...instance.nics, nic];
}

/**
 * Ganeti's words for states; its tools reject unknown ones. It has none for installations, so an
 * instance counts as down until its installation ends. A paused guest also has none and is shown as
 * ERROR_down.
 */
const statusWords: Readonly<Record<InstanceStatus, string>> = {
  running: 'running',
  paused: 'ERROR_down',
  ADMIN_down: 'ADMIN_down',
  ERROR_down: 'ERROR_down',
  ERROR_up: 'ERROR_up',
  installing: 'ADMIN_down',
  install_failed: 'ADMIN_down',
  ERROR_nodedown: 'ERROR_nodedown',
  // Ganeti has no state for a node that answers but fails.
  ERROR_nodefails: 'ERROR_nodedown',
  ERROR_nodeoffline: 'ERROR_nodeoffline',
};

export function backendParameters({ beparams }: InstanceInfo): Record<string, unknown> {
  const { memoryMiB, vcpus } = beparams;
  return {
    ...{ memory: memoryMiB, maxmem: memoryMiB, minmem: memoryMiB, vcpus },
    ...{ always_failover: false, auto_balance: false, spindle_use: 1 },
  };
}

const { text, bool, number, unit, timestamp, other } = fieldsOf<InstanceInfo>();
const running = fieldsOfPart((i: InstanceInfo) => (i.running === null ? null : i));

function nicField(title: string, doc: string, of: (nic: Nic) => unknown): Field<InstanceInfo> {
  return other(title, `List of each network interface's ${doc}`, (instance) =>
    nicsOf(instance).map(of),
  );
}

function diskField(
  title: string,
  doc: string,
  of: (disk: InstanceInfo['disks'][number]) => unknown,
): Field<InstanceInfo> {
  return other(title, `List of disk ${doc}`, ({ disks }) => disks.map(of));
}

/** Ganeti's fields of an instance, without private and secret parameters. */
export const instanceFields: Fields<InstanceInfo> = {
  name: text('Instance', 'Instance name', (i) => i.name),
  admin_state: text('InstanceState', 'Desired state of instance', (i) => i.adminState),
  os: text('OS', 'Operating system', (i) => i.osType ?? ''),
  pnode: text('Primary_node', 'Primary node', (i) => i.primaryNode),
  snodes: other('Secondary_Nodes', 'Secondary nodes', () => []),
  hypervisor: text('Hypervisor', 'Hypervisor name', () => 'kvm'),
  disk_template: text('Disk_template', 'Instance disk template', (i) => i.diskTemplate),
  'nic.ips': nicField('NIC_IPs', 'IP address', (nic) => nic.ip),
  'nic.macs': nicField('NIC_MACs', 'MAC address', (nic) => nic.mac),
  'nic.modes': nicField('NIC_modes', 'mode', (nic) => nic.mode),
  'nic.uuids': nicField('NIC_UUIDs', 'UUID', (nic) => nic.uuid),
  'nic.names': nicField('NIC_Names', 'name', (nic) => nic.name),
  'nic.links': nicField('NIC_links', 'link', (nic) => nic.link ?? ''),
  'nic.networks': nicField('NIC_networks', 'network', () => null),
  'nic.networks.names': nicField(
    'NIC_networks_names',
    'network name',
    (nic) => nic.networkName ?? null,
  ),
  'nic.bridges': nicField('NIC_bridges', 'bridge', ({ mode, link }) =>
    mode === 'bridged' ? link : null,
  ),
  network_port: other('Network_port', 'Instance network port if available', () => null),
  'disk.sizes': diskField('Disk_sizes', 'sizes', (disk) => toMiB(disk.sizeBytes)),
  'disk.spindles': diskField('Disk_spindles', 'spindles', () => null),
  'disk.uuids': diskField('Disk_UUIDs', 'UUIDs', (disk) => disk.uuid),
  'disk.names': diskField('Disk_names', 'names', (disk) => disk.name),
  disk_usage: unit('DiskUsage', 'Total disk space used by instance', ({ disks }) =>
    disks.reduce((sum, disk) => sum + toMiB(disk.sizeBytes), 0),
  ),
  beparams: other('BackendParameters', 'Backend parameters (merged)', backendParameters),
  hvparams: other('HypervisorParameters', 'Hypervisor parameters (merged)', (i) => i.hvparams),
  oper_state: bool('Running', 'Actual state of instance', (i) => i.running !== null),
  oper_ram: running.unit(
    'Memory',
    'Actual memory usage as seen by hypervisor',
    (i) => i.beparams.memoryMiB,
  ),
  oper_vcpus: running.number(
    'VCPUs',
    'Actual number of VCPUs as seen by hypervisor',
    (i) => i.beparams.vcpus,
  ),
  status: text('Status', 'Instance status', (i) => statusWords[i.status]),
  paused: other('Paused', 'Why the guest is paused', (i) => i.running?.halt?.reason ?? null),
  boot: other(
    'Boot',
    "Boot status that the guest's cloud-init reported",
    (i) => i.boot?.status ?? null,
  ),
  boot_stage: other('Boot_stage', 'Current stage of cloud-init', (i) => i.boot?.stage ?? null),
  boot_errors: other(
    'Boot_errors',
    'Errors that cloud-init reported',
    (i) => i.boot?.errors ?? null,
  ),
  custom_hvparams: other(
    'CustomHypervisorParameters',
    'Custom hypervisor parameters',
    (i) => i.hvparams,
  ),
  custom_beparams: other('CustomBackendParameters', 'Custom backend parameters', (i) => ({
    maxmem: i.beparams.memoryMiB,
    vcpus: i.beparams.vcpus,
  })),
  custom_nicparams: nicField('CustomNicParameters', 'parameters', ({ mode, link }) => ({
    mode,
    link,
  })),
  custom_osparams: other(
    'CustomOpSysParameters',
    'Custom operating system parameters',
    (i) => i.osParameters,
  ),
  ctime: timestamp('CTime', 'Creation timestamp', (i) => toSeconds(i.createdAtMs)),
  mtime: timestamp('MTime', 'Modification timestamp', (i) => toSeconds(i.modifiedAtMs)),
  uuid: text('UUID', 'Instance UUID', (i) => i.uuid),
  serial_no: number('SerialNo', 'Instance object serial number', (i) => i.serialNo),
  tags: other('Tags', 'Tags', (i) => i.tags),
};

/** Returns the result of Ganeti's job that queries one instance. */
export function describeInstanceData(instance: InstanceInfo): Record<string, unknown> {
  const { name, disks, hvparams, osParameters } = instance;
  const nics = nicsOf(instance);
  return {
    [name]: {
      name,
      config_state: instance.adminState,
      run_state: instance.running === null ? 'down' : 'up',
      pnode: instance.primaryNode,
      snodes: [],
      os: instance.osType ?? '',
      nics: nics.map(({ uuid, ip, mac, mode, link, ...nic }) => [
        ...[nic.name, uuid, ip, mac, mode, link, null, null, null],
      ]),
      disk_template: instance.diskTemplate,
      disks: disks.map((disk, index) => ({
        ...{ iv_name: `disk/${index}`, name: disk.name, uuid: disk.uuid },
        ...{ dev_type: 'file', mode: 'rw', size: toMiB(disk.sizeBytes), children: [] },
      })),
      hypervisor: 'kvm',
      network_port: null,
      hv_instance: hvparams,
      hv_actual: hvparams,
      be_instance: backendParameters(instance),
      be_actual: backendParameters(instance),
      os_instance: osParameters,
      os_actual: Object.fromEntries(
        Object.entries(instance.osParametersEffective)
          .filter(([, { visibility }]) => visibility === 'public')
          .map(([parameter, { value }]) => [parameter, value]),
      ),
      serial_no: instance.serialNo,
      mtime: toSeconds(instance.modifiedAtMs),
      ctime: toSeconds(instance.createdAtMs),
      uuid: instance.uuid,
    },
  };
}
