import type { ListedNode } from '#shared/contract/api.ts';
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
/** What only a node that answers says. */
const told = fieldsOfPart((listed: ListedNode) => ('silent' in listed ? undefined : listed));
const job = fieldsOf<JobRecord>();
const os = fieldsOf<OsRow>();
const profile = fieldsOf<ProfileInfo>();
const network = fieldsOf<NetworkInfo>();
const bootEnv = fieldsOf<BootEnvInfo>();
const bootArchive = fieldsOf<BootArchiveInfo>();

function stateOf(listed: ListedNode): string {
  if (listed.flags.offline) return 'offline';
  if ('silent' in listed) return 'silent';
  return listed.flags.drained ? 'drained' : 'up';
}
const snapshot = fieldsOf<InstanceSnapshot>();

/** Columns of `gnt-node list`. */
export const nodeFields: FieldTable<ListedNode> = {
  defaults: ['name', 'dfree', 'mtotal', 'mfree', 'pinst_cnt', 'running_cnt', 'appliance', 'state'],
  fields: [
    node.text('name', 'Node', 'Node name', (n) => n.name),
    told.size('dfree', 'DFree', 'Free disk space', (n) => n.diskFreeBytes / MIB),
    told.size('mtotal', 'MTotal', 'Memory', (n) => n.memoryMiB),
    told.size('mfree', 'MFree', 'Free memory', (n) => n.memoryFreeMiB),
    told.number('ctotal', 'CTotal', 'Processors', (n) => n.cpus),
    node.number('pinst_cnt', 'Pinst', 'Instances whose primary node it is', (n) => n.instances),
    told.number('running_cnt', 'Running', 'Running instances', (n) => n.instancesRunning),
    told.text('appliance', 'Appliance', 'intact, missing or corrupt', (n) => n.appliance.state),
    node.text(
      'state',
      'State',
      'offline or drained where it is marked so, silent when its daemon does not answer, or up',
      stateOf,
    ),
    node.text(
      'role',
      'Role',
      'D drained, O offline, M any other: each does the work of a master',
      (n) => nodeRole(n.flags),
    ),
    node.boolean('drained', 'Drained', 'Whether it gets no new instances', (n) => n.flags.drained),
    node.boolean(
      'offline',
      'Offline',
      'Whether nobody asks it for anything',
      (n) => n.flags.offline,
    ),
    told.text('version', 'Version', 'Version of the daemon', (n) => n.version),
    told.text('root', 'Root', 'Root of all paths', (n) => n.root),
    told.number('pid', 'PID', 'Process of the daemon', (n) => n.pid),
    told.text('netns', 'Netns', "The channel's network namespace", (n) => n.networkNamespace),
    told.number('metad_pid', 'Metad', 'Process of the metadata daemon', (n) => n.metad.pid),
    told.number(
      'metad_restarts',
      'Restarts',
      'Restarts of the metadata daemon',
      (n) => n.metad.restarts,
    ),
    told.time('stime', 'STime', 'When the daemon was started', (n) => n.startedAtMs),
  ],
};

/** Columns of `gnt-job list`. */
export const jobFields: FieldTable<JobRecord> = {
  defaults: ['id', 'status', 'summary', 'waits_for'],
  fields: [
    job.number('id', 'ID', 'Job id', (j) => j.id),
    job.text('status', 'Status', 'Status', (j) => j.status),
    job.text('summary', 'Summary', 'What it does', (j) => j.summary),
    job.text('node', 'Node', 'Node that runs it', (j) => j.node),
    job.list('waits_for', 'Waits_for', 'Jobs that must end before', (j) => j.waitsFor),
    job.text(
      'waits_because',
      'Waits_because',
      'What it waits for beside the locks of other jobs',
      (j) => j.waitsBecause,
    ),
    job.text('opcode', 'OpCode', 'Kind of operation', (j) => j.opcode),
    job.text('instance', 'Instance', 'Instance that it is about', (j) => j.instance),
    job.text('error', 'Error', 'Error code', (j) => j.error?.code),
    job.text('message', 'Message', 'Error message', (j) => j.error?.message),
    job.text('stage', 'Stage', 'Stage that failed', (j) => j.error?.stage),
    job.time('received_ts', 'Received', 'When it was submitted', (j) => j.receivedAtMs),
    job.time('start_ts', 'Start', 'When it was started', (j) => j.startedAtMs),
    job.time('end_ts', 'End', 'When it ended', (j) => j.endedAtMs),
  ],
};

/** A line of `gnt-os list`, with the other nodes that have something else under its name. */
export interface OsRow extends ListedOs {
  readonly differing: readonly string[];
}

/** Columns of `gnt-os list`. */
export const osFields: FieldTable<OsRow> = {
  defaults: ['name'],
  fields: [
    os.text('name', 'Name', 'OS, with its variant if it has some', (o) => o.listed),
    os.text('os', 'OS', 'OS without variant', (o) => o.name),
    os.text('path', 'Path', 'Where the definition is', (o) => o.path),
    os.boolean('valid', 'Valid', 'Whether it can be used', (o) => o.valid),
    os.boolean(
      'trusted',
      'Trusted',
      'Whether its top-level scripts may run on the host',
      (o) => o.trusted,
    ),
    os.boolean('hidden', 'Hidden', 'Left out of lists', (o) => o.hidden),
    os.boolean('blacklisted', 'Blacklisted', 'Refused for new instances', (o) => o.blacklisted),
    os.list('api_versions', 'API', 'API versions', (o) => o.apiVersions),
    os.list('variants', 'Variants', 'Variants', (o) => o.variants),
    os.list('parameters', 'Parameters', 'Names of its parameters', (o) =>
      o.parameters.map((p) => p.name),
    ),
    os.list(
      'differing',
      'Differing_nodes',
      'Nodes that lack it, cannot use it or have another content',
      (o) => o.differing,
    ),
  ],
};

/** Columns of `gnt-profile list`. */
export const profileFields: FieldTable<ProfileInfo> = {
  defaults: ['name', 'parameters', 'instances'],
  fields: [
    profile.text('name', 'Profile', 'Name', (p) => p.name),
    profile.list('parameters', 'Parameters', 'Names of its parameters', (p) =>
      Object.keys({ ...p.osParameters, ...p.osParametersPrivate }),
    ),
    profile.list('instances', 'Instances', 'Instances that name it', (p) => p.instances),
  ],
};

/** Columns of `gnt-network list`; names and titles as Ganeti's. */
export const networkFields: FieldTable<NetworkInfo> = {
  defaults: ['name', 'network', 'gateway', 'mac_prefix', 'group_list', 'tags'],
  fields: [
    network.text('name', 'Network', 'Name', (n) => n.name),
    network.text('uuid', 'UUID', 'UUID', (n) => n.uuid),
    network.text('network', 'Subnet', 'IPv4 network', (n) => n.network),
    network.text('gateway', 'Gateway', 'IPv4 gateway', (n) => n.gateway),
    network.text('mac_prefix', 'MacPrefix', 'First bytes of MACs', (n) => n.macPrefix),
    network.list('group_list', 'Connections', 'Nodes, and how they reach it', (n) =>
      Object.entries(n.connections).map(([node, connection]) =>
        connection.mode === 'nat' ? `${node} (nat)` : `${node} (bridged, ${connection.link})`,
      ),
    ),
    network.number('free_count', 'FreeCount', 'Addresses that are free', (n) => n.free),
    network.number(
      'reserved_count',
      'ReservedCount',
      'Addresses that are not',
      (n) => n.size - n.free,
    ),
    network.list(
      'external_reservations',
      'ExternalReservations',
      'Addresses that no instance gets',
      (n) => n.reserved,
    ),
    network.list('inst_list', 'Instances', 'Instances that are in it', (n) => [
      ...new Set(n.addresses.map(({ instance }) => instance)),
    ]),
    network.list('tags', 'Tags', 'Tags', (n) => n.tags),
  ],
};

/** Columns of `gnt-bootenv list`. */
export const bootEnvFields: FieldTable<BootEnvInfo> = {
  defaults: ['name', 'os', 'archive', 'instances'],
  fields: [
    bootEnv.text('name', 'BootEnv', 'Name', (b) => b.name),
    bootEnv.text('os', 'OS', 'Name of its operating system', (b) => b.osName),
    bootEnv.boolean('installs', 'Installs', 'Whether it installs', (b) => b.installs),
    bootEnv.text('archive', 'Archive', 'Archive of kernel and initrds', (b) => b.isoFile),
    bootEnv.text('url', 'URL', 'Where the archive comes from', (b) => b.isoUrl),
    bootEnv.list('templates', 'Templates', 'Stored templates that it names', (b) => b.templates),
    bootEnv.list('params', 'Params', 'Params that it needs', (b) => b.requiredParams),
    bootEnv.list('instances', 'Instances', 'Instances that are set to it', (b) => b.instances),
    bootEnv.text('description', 'Description', 'Description', (b) => b.description),
  ],
};

/** Columns of `gnt-bootenv listisos`. */
export const bootArchiveFields: FieldTable<BootArchiveInfo> = {
  defaults: ['name', 'size', 'bootenvs'],
  fields: [
    bootArchive.text('name', 'Archive', 'IsoFile that it was opened as', (a) => a.isoFile),
    bootArchive.size('size', 'Size', 'What its files take', (a) => a.sizeBytes / MIB),
    bootArchive.list('bootenvs', 'BootEnvs', 'BootEnvs that name it', (a) => a.bootEnvs),
    bootArchive.text('sha256', 'SHA256', 'Digest of the archive', (a) => a.sha256),
  ],
};

/** Columns of `gnt-instance list-snapshots`. */
export const snapshotFields: FieldTable<InstanceSnapshot> = {
  defaults: ['name', 'taken', 'running', 'disk.sizes'],
  fields: [
    snapshot.text('name', 'Snapshot', 'Name', (s) => s.name),
    snapshot.time('taken', 'Taken', 'When it was taken', (s) => s.takenAtMs),
    snapshot.boolean('running', 'Running', 'Whether its guest ran then', (s) => s.wasRunning),
    snapshot.size('disk.sizes', 'Disk_sizes', 'Sizes of the disks', (s) =>
      s.disks.map(({ sizeBytes }) => sizeBytes / MIB),
    ),
    snapshot.text('uuid', 'UUID', 'What its folder is called after', (s) => s.uuid),
  ],
};
