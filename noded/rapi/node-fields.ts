import type { HostCapacity } from '../doctor/describe-node.ts';
import { toMiB, type Field, type Fields } from './fields.ts';

/** A node, and the instances whose primary node it is. */
export interface NodeFacts {
  readonly name: string;
  /** Null of a node that does not answer. */
  readonly capacity: HostCapacity | null;
  readonly instanceNames: readonly string[];
}

function field(
  title: string,
  kind: Field<NodeFacts>['kind'],
  doc: string,
  of: Field<NodeFacts>['of'],
): Field<NodeFacts> {
  return { title, kind, doc, of };
}
/** What Ganeti tells of nodes and there is none of here. */
function none(title: string, kind: Field<NodeFacts>['kind'], doc: string): Field<NodeFacts> {
  return field(title, kind, doc, () => null);
}

export const nodeFields: Fields<NodeFacts> = {
  name: field('Node', 'text', 'Node name', (node) => node.name),
  offline: field('Offline', 'bool', 'Whether node is marked offline', () => false),
  master_candidate: field('MasterC', 'bool', 'Whether node is a master candidate', () => true),
  drained: field('Drained', 'bool', 'Whether node is drained', () => false),
  role: field('Role', 'text', 'Node role', () => 'M'),
  master_capable: field('MasterCapable', 'bool', 'Whether node can become a master', () => true),
  vm_capable: field('VMCapable', 'bool', 'Whether node can host instances', () => true),
  dtotal: none('DTotal', 'unit', 'Total storage space for instance disk allocation'),
  dfree: field(
    'DFree',
    'unit',
    'Available storage space',
    (node) => node.capacity && toMiB(node.capacity.diskFreeBytes),
  ),
  sptotal: none('SpTotal', 'number', 'Total spindles'),
  spfree: none('SpFree', 'number', 'Available spindles'),
  mtotal: field(
    'MTotal',
    'unit',
    'Total amount of memory',
    (node) => node.capacity?.memoryMiB ?? null,
  ),
  mnode: field(
    'MNode',
    'unit',
    'Amount of memory used',
    ({ capacity }) => capacity && capacity.memoryMiB - capacity.memoryFreeMiB,
  ),
  mfree: field('MFree', 'unit', 'Memory available', (node) => node.capacity?.memoryFreeMiB ?? null),
  ctotal: field(
    'CTotal',
    'number',
    'Number of logical processors',
    (node) => node.capacity?.cpus ?? null,
  ),
  cnos: none('CNOs', 'number', 'Number of logical processors used by the node'),
  cnodes: none('CNodes', 'number', 'Number of NUMA domains'),
  csockets: none('CSockets', 'number', 'Number of physical processor sockets'),
  pinst_cnt: field(
    'Pinst',
    'number',
    'Number of primary instances',
    ({ instanceNames }) => instanceNames.length,
  ),
  sinst_cnt: field('Sinst', 'number', 'Number of secondary instances', () => 0),
  pinst_list: field('PriInstances', 'other', 'List of primary instances', ({ instanceNames }) => [
    ...instanceNames,
  ]),
  sinst_list: field('SecInstances', 'other', 'List of secondary instances', () => []),
  pip: none('PrimaryIP', 'text', 'Primary IP address'),
  sip: none('SecondaryIP', 'text', 'Secondary IP address'),
  ndparams: field('NodeParameters', 'other', 'Merged node parameters', () => ({})),
  'group.uuid': none('GroupUUID', 'text', 'UUID of node group'),
  ctime: none('CTime', 'timestamp', 'Creation timestamp'),
  mtime: none('MTime', 'timestamp', 'Modification timestamp'),
  uuid: none('UUID', 'text', 'Node UUID'),
  serial_no: none('SerialNo', 'number', 'Node object serial number'),
  tags: field('Tags', 'other', 'Tags', () => []),
};
