import { ownValue } from '#shared/json/own-value.ts';

/** Why a command of Ganeti does not exist in gnt, and the alternative. */
export type Absence = readonly [reason: string, alternative: string];

const GROUPS: Absence = ['all nodes belong to one group, default', 'gnt-group list shows it'];
const MASTER: Absence = [
  'the cluster has no master: every node answers commands',
  'Run commands on any node; gnt-node list shows the nodes',
];
const STORAGE: Absence = [
  'nodes have no storage units',
  'gnt-node list -o name,dfree shows free space; vgs and zpool show volumes',
];
const NODE_TAGS: Absence = ['nodes have no tags', 'Name the nodes, or tag instances'];
const NO_REPLICA: Absence = [
  'disks have no replica on a second node',
  'gnt-instance migrate or move takes the disks to another node',
];
const POWER: Absence = ['no command controls the power of nodes', 'Use ipmitool or the BMC'];
const ARCHIVE: Absence = [
  'ended jobs are not archived: they are removed after 90 days',
  'gnt-job list --running leaves them out',
];
const OS_DEBUG: Absence = ['there is no such test', 'gnt-instance add --dry-run checks an OS'];
const NO_ALLOCATOR: Absence = [
  'placement is built in',
  'gnt-instance add --dry-run names the chosen node',
];
const FILTERS: Absence = [
  'jobs have no filters',
  'gnt-node modify --drained yes keeps new instances away',
];
const POLICY: Absence = [
  'there is no instance policy to set',
  'Set quotas of users in /etc/gnt/rapi-users',
];

/**
 * Ganeti's commands without a counterpart. In help and completion they are missing; the manual page
 * of a program lists them. The programs gnt-filter and gnt-storage are not installed.
 */
export const absentCommands: Readonly<Record<string, Readonly<Record<string, Absence>>>> = {
  'gnt-instance': {
    'replace-disks': NO_REPLICA,
    'recreate-disks': [
      'disks are created with the instance',
      'gnt-instance reinstall creates the first disk again; gnt-instance modify --disk N:remove and --disk N:add replace others',
    ],
    'deactivate-disks': [
      'a stop of the instance deactivates its disks',
      'gnt-instance shutdown NAME; gnt-instance activate-disks NAME shows their paths',
    ],
    'change-group': GROUPS,
  },
  'gnt-cluster': {
    destroy: [
      'no command removes a whole cluster',
      'Remove the instances, and then each node: gnt-node remove NAME',
    ],
    rename: ['the name of a cluster does not change', 'gnt-cluster init NAME sets it once'],
    'redist-conf': [
      'nodes read the configuration from the store, so there is nothing to distribute',
      'gnt-cluster verify checks the store of each node',
    ],
    'verify-disks': [
      'disks have no replica that could be out of date',
      'gnt-cluster verify checks the disks of each node',
    ],
    'repair-disk-sizes': [
      'recorded sizes need no repair',
      'gnt-cluster verify checks the disks of each node',
    ],
    'master-failover': MASTER,
    'master-ping': MASTER,
    getmaster: MASTER,
    'activate-master-ip': MASTER,
    'deactivate-master-ip': MASTER,
    version: [
      'the version is an option of every program',
      'gnt-cluster --version; gnt-node list -o name,version shows the version of each node',
    ],
    'search-tags': [
      'the list commands find tags',
      `gnt-instance list -F '"TAG" in tags'; gnt-network list -o name,tags`,
    ],
    queue: [
      'the job queue cannot be paused',
      'gnt-node modify --drained yes keeps new instances away',
    ],
    watcher: [
      'there is no watcher to pause',
      'gnt-instance modify --autostart no NAME turns automatic starts off',
    ],
    epo: POWER,
    'show-ispecs-cmd': POLICY,
    upgrade: ['no command upgrades packages', 'Run apt-get install gnt on one node after another'],
  },
  'gnt-node': {
    volumes: STORAGE,
    'list-storage': STORAGE,
    'modify-storage': STORAGE,
    'repair-storage': STORAGE,
    'list-drbd': NO_REPLICA,
    power: POWER,
    powercycle: POWER,
    health: POWER,
    'restricted-command': [
      'nodes have no restricted commands',
      'gnt-cluster command -n NODE COMMAND runs a command by SSH',
    ],
    'add-tags': NODE_TAGS,
    'remove-tags': NODE_TAGS,
    'list-tags': NODE_TAGS,
  },
  'gnt-job': {
    archive: ARCHIVE,
    autoarchive: ARCHIVE,
    'change-priority': [
      'jobs have no priority: they run as soon as their locks are free',
      'gnt-job list shows which jobs must end first',
    ],
  },
  'gnt-network': {
    rename: [
      'the name of a network does not change',
      'Create a network with gnt-network add, then move the NICs: gnt-instance modify --net N:modify,network=NAME',
    ],
  },
  'gnt-group': {
    add: GROUPS,
    'assign-nodes': GROUPS,
    modify: GROUPS,
    remove: GROUPS,
    rename: GROUPS,
    info: ['there is one group', 'gnt-group list --json shows it'],
    evacuate: ['all nodes belong to one group, default', 'gnt-node evacuate NODE'],
    'add-tags': GROUPS,
    'remove-tags': GROUPS,
    'list-tags': GROUPS,
    'show-ispecs-cmd': POLICY,
  },
  'gnt-debug': {
    'submit-job': ['no command submits a raw job', 'Use POST /v1/jobs of the node API'],
    iallocator: NO_ALLOCATOR,
    'test-jobqueue': ['there is no such test', 'Run gnt-debug delay 1'],
    'test-osparams': OS_DEBUG,
    locks: [
      'locks are not listed',
      'gnt-job list -o id,summary,waits_for shows which jobs must end first',
    ],
    wconfd: MASTER,
    metad: [
      'gnt-noded controls gnt-metad',
      'gnt-instance metadata NAME shows the metadata of a guest',
    ],
  },
  'gnt-filter': {
    add: FILTERS,
    list: FILTERS,
    'list-fields': FILTERS,
    info: FILTERS,
    replace: FILTERS,
    delete: FILTERS,
  },
  'gnt-storage': {
    diagnose: ['there is no external storage', 'Put disks in a shared folder: -t sharedfile'],
    info: ['there is no external storage', 'Put disks in a shared folder: -t sharedfile'],
  },
};

export function findAbsence(program: string, verb: string): Absence | undefined {
  return ownValue(ownValue(absentCommands, program) ?? {}, verb);
}
