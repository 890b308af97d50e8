import { createHash } from 'node:crypto';
import { diskTemplate } from '#shared/contract/disk-template.ts';
import { ALLOCATION_POLICY, GROUP, NODE_PARAMETERS } from '#shared/contract/node-group.ts';
import { MAX_DISKS, MAX_NICS } from '#shared/contract/part-changes.ts';
import {
  DEFAULT_BACKEND_PARAMETERS,
  DEFAULT_DISK_BYTES,
} from '../../instances/record/plan-record.ts';
import { VCPUS_PER_CPU } from '../../instances/view/refuse-oversized.ts';
import { fieldsOf, toMiB, toSeconds, type Fields } from './fields.ts';

/** Disk templates known to Ganeti's programs: they reject documents with any other name. */
const GANETI_TEMPLATES: ReadonlySet<string> = new Set(['diskless', 'file', 'sharedfile', 'plain']);
const SMALLEST = {
  'memory-size': 1,
  'cpu-count': 1,
  'disk-size': 1,
  'disk-count': 0,
  'nic-count': 0,
  'spindle-use': 1,
};
/** Ganeti's defaults. `hspace` tries sizes from these downwards. */
const LARGEST = {
  'memory-size': 32_768,
  'cpu-count': 8,
  'disk-size': 1_048_576,
  'disk-count': MAX_DISKS,
  'nic-count': MAX_NICS,
  'spindle-use': 1,
};

/** An instance policy of Ganeti. `hspace` fills the cluster with instances of the size `std`. */
export const INSTANCE_POLICY = {
  minmax: [{ min: SMALLEST, max: LARGEST }],
  std: {
    'memory-size': DEFAULT_BACKEND_PARAMETERS.memoryMiB,
    'cpu-count': DEFAULT_BACKEND_PARAMETERS.vcpus,
    'disk-size': toMiB(DEFAULT_DISK_BYTES),
    'disk-count': 1,
    'nic-count': 1,
    'spindle-use': 1,
  },
  'disk-templates': diskTemplate.options.filter((one) => GANETI_TEMPLATES.has(one)),
  'vcpu-ratio': VCPUS_PER_CPU,
  'spindle-ratio': 32,
};

/** Returns the UUID of the group, which depends only on the UUID of the cluster (RFC 9562, 5.5). */
export function groupUuidOf(clusterUuid: string): string {
  const namespace = Buffer.from(clusterUuid.replaceAll('-', ''), 'hex');
  const digest = createHash('sha1').update(namespace).update(GROUP).digest();
  digest.writeUInt8((digest.readUInt8(6) & 0x0f) | 0x50, 6);
  digest.writeUInt8((digest.readUInt8(8) & 0x3f) | 0x80, 8);
  return digest
    .toString('hex', 0, 16)
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

export interface GroupFacts {
  readonly uuid: string;
  readonly createdAtMs: number;
  readonly nodeNames: readonly string[];
  readonly instanceNames: readonly string[];
}

const { text, number, timestamp, other } = fieldsOf<GroupFacts>();

export const groupFields: Fields<GroupFacts> = {
  alloc_policy: text('AllocPolicy', 'Allocation policy for group', () => ALLOCATION_POLICY),
  name: text('Group', 'Group name', () => GROUP),
  node_cnt: number('Nodes', 'Number of nodes', ({ nodeNames }) => nodeNames.length),
  node_list: other('NodeList', 'List of nodes', ({ nodeNames }) => [...nodeNames]),
  pinst_cnt: number(
    'Instances',
    'Number of primary instances',
    ({ instanceNames }) => instanceNames.length,
  ),
  pinst_list: other('InstanceList', 'List of primary instances', ({ instanceNames }) => [
    ...instanceNames,
  ]),
  ipolicy: other('InstancePolicy', 'Instance policy limitations (merged)', () => INSTANCE_POLICY),
  custom_ipolicy: other('CustomInstancePolicy', 'Custom instance policy limitations', () => ({})),
  diskparams: other('DiskParameters', 'Disk parameters (merged)', () => ({})),
  custom_diskparams: other('CustomDiskParameters', 'Custom disk parameters', () => ({})),
  ndparams: other('NDParams', 'Node parameters', () => NODE_PARAMETERS),
  custom_ndparams: other('CustomNDParams', 'Custom node parameters', () => ({})),
  ctime: timestamp('CTime', 'Creation timestamp', ({ createdAtMs }) => toSeconds(createdAtMs)),
  mtime: timestamp('MTime', 'Modification timestamp', ({ createdAtMs }) => toSeconds(createdAtMs)),
  uuid: text('UUID', 'Group UUID', ({ uuid }) => uuid),
  serial_no: number('SerialNo', 'Group object serial number', () => 1),
  tags: other('Tags', 'Tags', () => []),
};
