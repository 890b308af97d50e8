import type { ListedNode, NodeInfo, OsInfo } from '#shared/contract/api.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import type { FieldValue } from '../render/field.ts';
import type { FieldTable } from '../render/select.ts';

const BYTES_PER_MIB = 1024 * 1024;

/** What only a node that answers says. */
function known(get: (node: NodeInfo) => FieldValue): (node: ListedNode) => FieldValue {
  return (node) => ('silent' in node ? null : get(node));
}

/** Columns of `gnt-node list`. */
export const nodeFields: FieldTable<ListedNode> = {
  defaults: ['name', 'dfree', 'mtotal', 'mfree', 'pinst_cnt', 'running_cnt', 'appliance', 'state'],
  fields: [
    { name: 'name', title: 'Node', kind: 'text', description: 'Node name', get: (n) => n.name },
    {
      name: 'dfree',
      title: 'DFree',
      kind: 'size',
      description: 'Free disk space',
      get: known((n) => n.diskFreeBytes / BYTES_PER_MIB),
    },
    {
      name: 'mtotal',
      title: 'MTotal',
      kind: 'size',
      description: 'Memory',
      get: known((n) => n.memoryMiB),
    },
    {
      name: 'mfree',
      title: 'MFree',
      kind: 'size',
      description: 'Free memory',
      get: known((n) => n.memoryFreeMiB),
    },
    {
      name: 'ctotal',
      title: 'CTotal',
      kind: 'number',
      description: 'Processors',
      get: known((n) => n.cpus),
    },
    {
      name: 'pinst_cnt',
      title: 'Pinst',
      kind: 'number',
      description: 'Instances whose primary node it is',
      get: (n) => n.instances,
    },
    {
      name: 'running_cnt',
      title: 'Running',
      kind: 'number',
      description: 'Running instances',
      get: known((n) => n.instancesRunning),
    },
    {
      name: 'appliance',
      title: 'Appliance',
      kind: 'text',
      description: 'intact, missing or corrupt',
      get: known((n) => n.appliance.state),
    },
    {
      name: 'state',
      title: 'State',
      kind: 'text',
      description: 'up, or silent when its daemon does not answer',
      get: (n) => ('silent' in n ? 'silent' : 'up'),
    },
    {
      name: 'version',
      title: 'Version',
      kind: 'text',
      description: 'Version of the daemon',
      get: known((n) => n.version),
    },
    {
      name: 'root',
      title: 'Root',
      kind: 'text',
      description: 'Root of all paths',
      get: known((n) => n.root),
    },
    {
      name: 'pid',
      title: 'PID',
      kind: 'number',
      description: 'Process of the daemon',
      get: known((n) => n.pid),
    },
    {
      name: 'netns',
      title: 'Netns',
      kind: 'text',
      description: "The channel's network namespace",
      get: known((n) => n.networkNamespace),
    },
    {
      name: 'metad_pid',
      title: 'Metad',
      kind: 'number',
      description: 'Process of the metadata daemon',
      get: known((n) => n.metad.pid),
    },
    {
      name: 'metad_restarts',
      title: 'Restarts',
      kind: 'number',
      description: 'Restarts of the metadata daemon',
      get: known((n) => n.metad.restarts),
    },
    {
      name: 'stime',
      title: 'STime',
      kind: 'time',
      description: 'When the daemon was started',
      get: known((n) => n.startedAtMs),
    },
  ],
};

/** Columns of `gnt-job list`. */
export const jobFields: FieldTable<JobRecord> = {
  defaults: ['id', 'status', 'summary', 'waits_for'],
  fields: [
    { name: 'id', title: 'ID', kind: 'number', description: 'Job id', get: (j) => j.id },
    { name: 'status', title: 'Status', kind: 'text', description: 'Status', get: (j) => j.status },
    {
      name: 'summary',
      title: 'Summary',
      kind: 'text',
      description: 'What it does',
      get: (j) => j.summary,
    },
    {
      name: 'node',
      title: 'Node',
      kind: 'text',
      description: 'Node that runs it',
      get: (j) => j.node ?? null,
    },
    {
      name: 'waits_for',
      title: 'Waits_for',
      kind: 'list',
      description: 'Jobs that must end before',
      get: (j) => j.waitsFor,
    },
    {
      name: 'waits_because',
      title: 'Waits_because',
      kind: 'text',
      description: 'What it waits for beside the locks of other jobs',
      get: (j) => j.waitsBecause ?? null,
    },
    {
      name: 'opcode',
      title: 'OpCode',
      kind: 'text',
      description: 'Kind of operation',
      get: (j) => j.opcode,
    },
    {
      name: 'instance',
      title: 'Instance',
      kind: 'text',
      description: 'Instance that it is about',
      get: (j) => j.instance,
    },
    {
      name: 'error',
      title: 'Error',
      kind: 'text',
      description: 'Error code',
      get: (j) => j.error?.code ?? null,
    },
    {
      name: 'message',
      title: 'Message',
      kind: 'text',
      description: 'Error message',
      get: (j) => j.error?.message ?? null,
    },
    {
      name: 'stage',
      title: 'Stage',
      kind: 'text',
      description: 'Stage that failed',
      get: (j) => j.error?.stage ?? null,
    },
    {
      name: 'received_ts',
      title: 'Received',
      kind: 'time',
      description: 'When it was submitted',
      get: (j) => j.receivedAtMs,
    },
    {
      name: 'start_ts',
      title: 'Start',
      kind: 'time',
      description: 'When it was started',
      get: (j) => j.startedAtMs,
    },
    {
      name: 'end_ts',
      title: 'End',
      kind: 'time',
      description: 'When it ended',
      get: (j) => j.endedAtMs,
    },
  ],
};

/** Columns of `gnt-os list`. */
export const osFields: FieldTable<OsInfo & { readonly listed: string }> = {
  defaults: ['name'],
  fields: [
    {
      name: 'name',
      title: 'Name',
      kind: 'text',
      description: 'OS, with its variant if it has some',
      get: (o) => o.listed,
    },
    {
      name: 'os',
      title: 'OS',
      kind: 'text',
      description: 'OS without variant',
      get: (o) => o.name,
    },
    {
      name: 'path',
      title: 'Path',
      kind: 'text',
      description: 'Where the definition is',
      get: (o) => o.path,
    },
    {
      name: 'valid',
      title: 'Valid',
      kind: 'boolean',
      description: 'Whether it can be used',
      get: (o) => o.valid,
    },
    {
      name: 'trusted',
      title: 'Trusted',
      kind: 'boolean',
      description: 'Whether its top-level scripts may run on the host',
      get: (o) => o.trusted,
    },
    {
      name: 'hidden',
      title: 'Hidden',
      kind: 'boolean',
      description: 'Left out of lists',
      get: (o) => o.hidden,
    },
    {
      name: 'blacklisted',
      title: 'Blacklisted',
      kind: 'boolean',
      description: 'Refused for new instances',
      get: (o) => o.blacklisted,
    },
    {
      name: 'api_versions',
      title: 'API',
      kind: 'list',
      description: 'API versions',
      get: (o) => o.apiVersions,
    },
    {
      name: 'variants',
      title: 'Variants',
      kind: 'list',
      description: 'Variants',
      get: (o) => o.variants,
    },
    {
      name: 'parameters',
      title: 'Parameters',
      kind: 'list',
      description: 'Names of its parameters',
      get: (o) => o.parameters.map((p) => p.name),
    },
  ],
};
