import type { ListedNode } from '#shared/contract/api.ts';
import { ALLOCATION_POLICY, GROUP, NODE_PARAMETERS } from '#shared/contract/node-group.ts';
import { nodeRole } from '#shared/contract/node-role.ts';
import type { InstanceSnapshot } from '#shared/contract/instance.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import type { BootArchiveInfo, BootEnvInfo } from '#shared/contract/boot-objects.ts';
import type { NetworkInfo } from '#shared/contract/network.ts';
import type { ProfileInfo } from '#shared/contract/profile.ts';
import type { ListedOs } from '#shared/contract/os-variants.ts';
import { MIB } from '#shared/units/bytes.ts';
import { fieldsOf, fieldsOfPart } from '../render/field.ts';
import type { FieldTable } from '../render/select.ts';

const node = fieldsOf<ListedNode>();
/** Fields of nodes that answered. */
const told = fieldsOfPart((listed: ListedNode) => ('silent' in listed ? undefined : listed));
const job = fieldsOf<JobRecord>();
const os = fieldsOf<OsRow>();
const profile = fieldsOf<ProfileInfo>();
const network = fieldsOf<NetworkInfo>();
const bootEnv = fieldsOf<BootEnvInfo>();
const bootArchive = fieldsOf<BootArchiveInfo>();
const group = fieldsOf<NodeGroup>();

function stateOf(listed: ListedNode): string {
  if (listed.flags.offline) return 'offline';
  if ('silent' in listed) return 'silent';
  return listed.flags.drained ? 'drained' : 'up';
}
const snapshot = fieldsOf<InstanceSnapshot>();

export const nodeFields: FieldTable<ListedNode> = {
  program: 'gnt-node',
  defaults: ['name', 'dfree', 'mtotal', 'mfree', 'pinst_cnt', 'running_cnt', 'appliance', 'state'],
  fields: [
    node.text('name', 'Node', 'Node name', (n) => n.name),
    told.size('dfree', 'DFree', 'Free disk space', (n) => n.diskFreeBytes / MIB),
    told.size('mtotal', 'MTotal', 'Memory', (n) => n.memoryMiB),
    told.size('mfree', 'MFree', 'Free memory', (n) => n.memoryFreeMiB),
    told.number('ctotal', 'CTotal', 'Processors', (n) => n.cpus),
    node.number('pinst_cnt', 'Pinst', 'Number of instances', (n) => n.instances),
    told.number('running_cnt', 'Running', 'Number of running instances', (n) => n.instancesRunning),
    told.text('appliance', 'Appliance', 'intact, missing or corrupt', (n) => n.appliance.state),
    node.text(
      'state',
      'State',
      'up, drained, offline, or silent if the daemon does not respond',
      stateOf,
    ),
    node.text('role', 'Role', 'D drained, O offline, M otherwise (every node is a master)', (n) =>
      nodeRole(n.flags),
    ),
    node.boolean(
      'drained',
      'Drained',
      'Whether the node gets no new instances',
      (n) => n.flags.drained,
    ),
    node.boolean(
      'offline',
      'Offline',
      'Whether other nodes do not contact it',
      (n) => n.flags.offline,
    ),
    told.text('version', 'Version', 'Version of the daemon', (n) => n.version),
    told.text('root', 'Root', 'Prefix of all paths (GNT_ROOT)', (n) => n.root),
    told.number('pid', 'PID', 'Process id of the daemon', (n) => n.pid),
    told.text('netns', 'Netns', 'Network namespace of the channel', (n) => n.networkNamespace),
    told.number('metad_pid', 'Metad', 'Process id of the metadata daemon', (n) => n.metad.pid),
    told.number(
      'metad_restarts',
      'Restarts',
      'Number of restarts of the metadata daemon',
      (n) => n.metad.restarts,
    ),
    told.time('stime', 'STime', 'Start time of the daemon', (n) => n.startedAtMs),
  ],
};

export const jobFields: FieldTable<JobRecord> = {
  program: 'gnt-job',
  defaults: ['id', 'status', 'summary', 'waits_for'],
  fields: [
    job.number('id', 'ID', 'Job id', (j) => j.id),
    job.text('status', 'Status', 'Status', (j) => j.status),
    job.text('summary', 'Summary', 'Summary', (j) => j.summary),
    job.text('node', 'Node', 'Node that runs the job', (j) => j.node),
    job.list('waits_for', 'Waits_for', 'Jobs that must end first', (j) => j.waitsFor),
    job.text(
      'waits_because',
      'Waits_because',
      'Reason for waiting, other than locks of jobs',
      (j) => j.waitsBecause,
    ),
    job.text('opcode', 'OpCode', 'Opcode', (j) => j.opcode),
    job.text('instance', 'Instance', 'Instance', (j) => j.instance),
    job.text('error', 'Error', 'Error code', (j) => j.error?.code),
    job.text('message', 'Message', 'Error message', (j) => j.error?.message),
    job.text('stage', 'Stage', 'Stage that failed', (j) => j.error?.stage),
    job.time('received_ts', 'Received', 'Time of the submission', (j) => j.receivedAtMs),
    job.time('start_ts', 'Start', 'Start time', (j) => j.startedAtMs),
    job.time('end_ts', 'End', 'End time', (j) => j.endedAtMs),
  ],
};

/** A line of `gnt-os list`, with the other nodes whose definition differs. */
export interface OsRow extends ListedOs {
  readonly differing: readonly string[];
}

export const osFields: FieldTable<OsRow> = {
  program: 'gnt-os',
  defaults: ['name'],
  fields: [
    os.text('name', 'Name', 'OS with variant', (o) => o.listed),
    os.text('os', 'OS', 'OS without variant', (o) => o.name),
    os.text('path', 'Path', 'Directory of the OS definition', (o) => o.path),
    os.boolean('valid', 'Valid', 'Whether the OS definition is valid', (o) => o.valid),
    os.boolean(
      'trusted',
      'Trusted',
      'Whether its top-level scripts may run on nodes',
      (o) => o.trusted,
    ),
    os.boolean('hidden', 'Hidden', 'Whether it is hidden in lists', (o) => o.hidden),
    os.boolean(
      'blacklisted',
      'Blacklisted',
      'Whether it is refused for new instances',
      (o) => o.blacklisted,
    ),
    os.list('api_versions', 'API', 'API versions', (o) => o.apiVersions),
    os.list('variants', 'Variants', 'Variants', (o) => o.variants),
    os.list('parameters', 'Parameters', 'Names of the parameters', (o) =>
      o.parameters.map((p) => p.name),
    ),
    os.list(
      'differing',
      'Differing_nodes',
      'Nodes where it is missing, invalid or different',
      (o) => o.differing,
    ),
  ],
};

export const profileFields: FieldTable<ProfileInfo> = {
  program: 'gnt-profile',
  defaults: ['name', 'parameters', 'instances'],
  fields: [
    profile.text('name', 'Profile', 'Name', (p) => p.name),
    profile.list('parameters', 'Parameters', 'Names of the parameters', (p) =>
      Object.keys({ ...p.osParameters, ...p.osParametersPrivate }),
    ),
    profile.list('instances', 'Instances', 'Instances that use it', (p) => p.instances),
  ],
};

/** Columns of `gnt-network list`, with Ganeti's names and titles. */
export const networkFields: FieldTable<NetworkInfo> = {
  program: 'gnt-network',
  defaults: ['name', 'network', 'gateway', 'mac_prefix', 'group_list', 'tags'],
  fields: [
    network.text('name', 'Network', 'Name', (n) => n.name),
    network.text('uuid', 'UUID', 'UUID', (n) => n.uuid),
    network.text('network', 'Subnet', 'IPv4 network', (n) => n.network),
    network.text('gateway', 'Gateway', 'IPv4 gateway', (n) => n.gateway),
    network.text('mac_prefix', 'MacPrefix', 'First bytes of MAC addresses', (n) => n.macPrefix),
    network.list('group_list', 'Connections', 'Nodes and their connections', (n) =>
      Object.entries(n.connections).map(([node, connection]) =>
        connection.mode === 'nat' ? `${node} (nat)` : `${node} (bridged, ${connection.link})`,
      ),
    ),
    network.number('free_count', 'FreeCount', 'Number of free addresses', (n) => n.free),
    network.number(
      'reserved_count',
      'ReservedCount',
      'Number of used and reserved addresses',
      (n) => n.size - n.free,
    ),
    network.list(
      'external_reservations',
      'ExternalReservations',
      'Reserved addresses',
      (n) => n.reserved,
    ),
    network.list('inst_list', 'Instances', 'Instances with an address', (n) => [
      ...new Set(n.addresses.map(({ instance }) => instance)),
    ]),
    network.list('tags', 'Tags', 'Tags', (n) => n.tags),
  ],
};

export const bootEnvFields: FieldTable<BootEnvInfo> = {
  program: 'gnt-bootenv',
  defaults: ['name', 'os', 'archive', 'instances'],
  fields: [
    bootEnv.text('name', 'BootEnv', 'Name', (b) => b.name),
    bootEnv.text('os', 'OS', 'Operating system', (b) => b.osName),
    bootEnv.boolean('installs', 'Installs', 'Whether it installs the instance', (b) => b.installs),
    bootEnv.text('archive', 'Archive', 'Archive of kernel and initrds', (b) => b.isoFile),
    bootEnv.text('url', 'URL', 'URL of the archive', (b) => b.isoUrl),
    bootEnv.list('templates', 'Templates', 'Templates', (b) => b.templates),
    bootEnv.list('params', 'Params', 'Required params', (b) => b.requiredParams),
    bootEnv.list('instances', 'Instances', 'Instances that boot it', (b) => b.instances),
    bootEnv.text('description', 'Description', 'Description', (b) => b.description),
  ],
};

export const bootArchiveFields: FieldTable<BootArchiveInfo> = {
  defaults: ['name', 'size', 'bootenvs'],
  fields: [
    bootArchive.text('name', 'Archive', 'IsoFile', (a) => a.isoFile),
    bootArchive.size('size', 'Size', 'Size of its files', (a) => a.sizeBytes / MIB),
    bootArchive.list('bootenvs', 'BootEnvs', 'Boot environments that use it', (a) => a.bootEnvs),
    bootArchive.text('sha256', 'SHA256', 'Digest of the archive', (a) => a.sha256),
  ],
};

export const snapshotFields: FieldTable<InstanceSnapshot> = {
  defaults: ['name', 'taken', 'running', 'disk.sizes'],
  fields: [
    snapshot.text('name', 'Snapshot', 'Name', (s) => s.name),
    snapshot.time('taken', 'Taken', 'Time of the snapshot', (s) => s.takenAtMs),
    snapshot.boolean('running', 'Running', 'Whether the guest was running', (s) => s.wasRunning),
    snapshot.size('disk.sizes', 'Disk_sizes', 'Sizes of the disks', (s) =>
      s.disks.map(({ sizeBytes }) => sizeBytes / MIB),
    ),
    snapshot.text('uuid', 'UUID', 'UUID; name of its directory', (s) => s.uuid),
  ],
};

/** The only node group of a cluster. */
export interface NodeGroup {
  readonly createdAtMs: number;
  readonly nodes: readonly string[];
  readonly instances: readonly string[];
}

export const groupFields: FieldTable<NodeGroup> = {
  program: 'gnt-group',
  defaults: ['name', 'node_cnt', 'pinst_cnt', 'alloc_policy', 'ndparams'],
  fields: [
    group.text('name', 'Group', 'Group name', () => GROUP),
    group.number('node_cnt', 'Nodes', 'Number of nodes', (g) => g.nodes.length),
    group.list('node_list', 'NodeList', 'Nodes', (g) => g.nodes),
    group.number('pinst_cnt', 'Instances', 'Number of instances', (g) => g.instances.length),
    group.list('pinst_list', 'InstanceList', 'Instances', (g) => g.instances),
    group.text('alloc_policy', 'AllocPolicy', 'Allocation policy', () => ALLOCATION_POLICY),
    group.text('ndparams', 'NDParams', 'Node parameters, all with defaults of Ganeti', () =>
      Object.entries(NODE_PARAMETERS)
        .map(([key, value]) => `${key}=${value}`)
        .join(', '),
    ),
    group.time('ctime', 'CTime', 'Creation time of the cluster', (g) => g.createdAtMs),
  ],
};
