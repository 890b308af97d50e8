import type { NodeFlags } from '#shared/contract/node-flags.ts';
import { nodeRole } from '#shared/contract/node-role.ts';
import { NODE_PARAMETERS } from '#shared/contract/node-group.ts';
import type { HostCapacity } from '../../operations/doctor/describe-node.ts';
import { fieldsOf, fieldsOfPart, toMiB, type Fields } from './fields.ts';

/** A node, and the instances whose primary node it is. */
export interface NodeFacts {
  readonly name: string;
  /** Null for a node that does not respond. */
  readonly capacity: HostCapacity | null;
  readonly instanceNames: readonly string[];
  /** Sum of the disk sizes of these instances. */
  readonly instanceDiskBytes: number;
  readonly flags: NodeFlags;
  readonly groupUuid: string;
}

const { text, bool, number, unit, timestamp, other } = fieldsOf<NodeFacts>();
/** Fields that are null for a node that does not respond. */
const told = fieldsOfPart((node: NodeFacts) => node.capacity);
/** Value of Ganeti's fields that have no counterpart here. */
const none = (): null => null;

export const nodeFields: Fields<NodeFacts> = {
  name: text('Node', 'Node name', (node) => node.name),
  offline: bool('Offline', 'Whether node is marked offline', (node) => node.flags.offline),
  master_candidate: bool('MasterC', 'Whether node is a master candidate', () => true),
  drained: bool('Drained', 'Whether node is drained', (node) => node.flags.drained),
  role: text('Role', 'Node role', (node) => nodeRole(node.flags)),
  master_capable: bool('MasterCapable', 'Whether node can become a master', () => true),
  vm_capable: bool('VMCapable', 'Whether node can host instances', () => true),
  // Free space and the space that disks of instances may fill: htools subtracts one from the other.
  dtotal: unit(
    'DTotal',
    'Total storage space for instance disk allocation',
    ({ capacity, instanceDiskBytes }) =>
      capacity && toMiB(capacity.diskFreeBytes + instanceDiskBytes),
  ),
  dfree: told.unit('DFree', 'Available storage space', (node) => toMiB(node.diskFreeBytes)),
  sptotal: told.number('SpTotal', 'Total spindles', () => 0),
  spfree: told.number('SpFree', 'Available spindles', () => 0),
  mtotal: told.unit('MTotal', 'Total amount of memory', (node) => node.memoryMiB),
  mnode: told.unit('MNode', 'Amount of memory used', (node) => node.memoryMiB - node.memoryFreeMiB),
  mfree: told.unit('MFree', 'Memory available', (node) => node.memoryFreeMiB),
  ctotal: told.number('CTotal', 'Number of logical processors', (node) => node.cpus),
  // Ganeti reports these three as 1 for each KVM node.
  cnos: told.number('CNOs', 'Number of logical processors used by the node', () => 1),
  cnodes: told.number('CNodes', 'Number of NUMA domains', () => 1),
  csockets: told.number('CSockets', 'Number of physical processor sockets', () => 1),
  pinst_cnt: number('Pinst', 'Number of primary instances', (node) => node.instanceNames.length),
  sinst_cnt: number('Sinst', 'Number of secondary instances', () => 0),
  pinst_list: other('PriInstances', 'List of primary instances', (node) => [...node.instanceNames]),
  sinst_list: other('SecInstances', 'List of secondary instances', () => []),
  pip: text('PrimaryIP', 'Primary IP address', none),
  sip: text('SecondaryIP', 'Secondary IP address', none),
  ndparams: other('NodeParameters', 'Merged node parameters', () => NODE_PARAMETERS),
  'group.uuid': text('GroupUUID', 'UUID of node group', ({ groupUuid }) => groupUuid),
  ctime: timestamp('CTime', 'Creation timestamp', none),
  mtime: timestamp('MTime', 'Modification timestamp', none),
  uuid: text('UUID', 'Node UUID', none),
  serial_no: number('SerialNo', 'Node object serial number', none),
  tags: other('Tags', 'Tags', () => []),
};
