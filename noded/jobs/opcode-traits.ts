import type { Opcode, OpcodeName, OpcodeOf } from '#shared/contract/opcode.ts';
import { splitOsName } from '#shared/contract/os-name.ts';

type Named = Extract<Opcode, { readonly name: string }>;
type OrphanName = Readonly<Record<'name' | 'uuid', string>>;

/** Differences between opcodes that the layers around their handlers act on. */
export interface OpcodeTraits<Op extends Opcode> {
  /**
   * Returns the locks of a job, sorted by name.
   * @param orphans of this node
   */
  locks(opcode: Op, orphans: readonly OrphanName[]): readonly string[];
  /** The object of the field `name`. Only jobs about instances are sent to other nodes. */
  readonly names: Op extends Named ? 'instance' | 'new-instance' | 'other' : 'other';
  /** The node that runs it: the instance's node, an online member of the cluster, or any node. */
  readonly runsOn: Op extends Named
    ? 'primary-node' | 'member' | 'any-node'
    : 'member' | 'any-node';
  /**
   * Permission of RAPI users that are bound to the instance: submit it, see its job, or neither.
   */
  readonly boundUsers: Op extends Named ? 'submit' | 'see' | 'neither' : 'neither';
  /** Whether `name` may be, or always is, the name or UUID of an orphan. */
  readonly orphan?: 'possible' | 'always';
  /** Returns whether it removes disks: `name` must then be the full name of the instance. */
  removesDisks?(opcode: Op): boolean;
  /** Returns whether it takes or promises disk space, so that its job warns of low space. */
  takesSpace?(opcode: Op): boolean;
}

const always = (): boolean => true;

/** Returns the lock of an instance. Locks contain names, not UUIDs, because requests do. */
function instanceLock(name: string): string {
  return `instance/${name}`;
}

/** Locks an orphan by both its name and its UUID, whichever is given. */
function lockOrphan({ name }: Named, orphans: readonly OrphanName[]): readonly string[] {
  const same = orphans.filter((orphan) => orphan.uuid === name || orphan.name === name);
  return lockInstances(name, ...same.flatMap((orphan) => [orphan.uuid, orphan.name]));
}

function lockInstances(...names: readonly string[]): readonly string[] {
  return [...new Set(names)].sort().map(instanceLock);
}

const ON_INSTANCE = {
  locks: ({ name }: Named) => [instanceLock(name)],
  names: 'instance',
  runsOn: 'primary-node',
  boundUsers: 'submit',
} as const;
/** Placement uses the capacity of all users, so bound users do not change it. */
const PLACES_INSTANCE = { ...ON_INSTANCE, boundUsers: 'see' } as const;
const ON_CLUSTER = { names: 'other', runsOn: 'member', boundUsers: 'neither' } as const;
const ON_ANY_NODE = { ...ON_CLUSTER, runsOn: 'any-node' } as const;

const ON_PROFILES = { ...ON_CLUSTER, locks: () => ['profiles'] } as const;
const ON_NETWORKS = { ...ON_CLUSTER, locks: () => ['networks'] } as const;
/** A change of boot content changes no instance, so one at a time is enough. */
const ON_BOOT_CONTENT = { ...ON_CLUSTER, locks: () => ['bootenvs', 'profiles'] } as const;

const OPCODE_TRAITS: { readonly [Name in OpcodeName]: OpcodeTraits<OpcodeOf<Name>> } = {
  INSTANCE_CREATE: {
    locks: ({ name, importFrom }) => [
      ...(importFrom === undefined ? [] : [`export/${importFrom}`]),
      instanceLock(name),
    ],
    names: 'new-instance',
    runsOn: 'member',
    boundUsers: 'submit',
    takesSpace: always,
  },
  INSTANCE_REINSTALL: { ...ON_INSTANCE, removesDisks: always, takesSpace: always },
  INSTANCE_SET_PARAMS: {
    ...ON_INSTANCE,
    removesDisks: ({ disks }) => disks.some(({ action }) => action === 'remove'),
    takesSpace: ({ disks }) => disks.length > 0,
  },
  /** Without locks, to show an instance while another job changes it. */
  INSTANCE_QUERY_DATA: { ...ON_INSTANCE, locks: () => [] },
  INSTANCE_REMOVE: {
    ...ON_INSTANCE,
    locks: lockOrphan,
    orphan: 'possible',
    removesDisks: always,
  },
  /** An orphan has no owner, whatever its name is. */
  INSTANCE_ADOPT: {
    ...ON_INSTANCE,
    locks: lockOrphan,
    runsOn: 'member',
    boundUsers: 'see',
    orphan: 'always',
  },
  INSTANCE_RENAME: { ...ON_INSTANCE, locks: ({ name, newName }) => lockInstances(name, newName) },
  INSTANCE_COPY: {
    ...ON_INSTANCE,
    locks: ({ name, newName }) => lockInstances(name, newName),
    takesSpace: always,
  },
  INSTANCE_MOVE: PLACES_INSTANCE,
  INSTANCE_MIGRATE: PLACES_INSTANCE,
  /** Runs on the node that takes the instance over. */
  INSTANCE_FAILOVER: { ...PLACES_INSTANCE, runsOn: 'member' },
  INSTANCE_STARTUP: ON_INSTANCE,
  INSTANCE_SHUTDOWN: ON_INSTANCE,
  INSTANCE_REBOOT: ON_INSTANCE,
  INSTANCE_GROW_DISK: { ...ON_INSTANCE, takesSpace: always },
  /** Scripts run in order, but do not block a job that stops the instance. */
  INSTANCE_RUN_SCRIPT: { ...ON_INSTANCE, locks: ({ name }) => [`script/${name}`] },
  INSTANCE_SNAPSHOT: { ...ON_INSTANCE, takesSpace: always },
  INSTANCE_RESTORE: { ...ON_INSTANCE, takesSpace: always },
  INSTANCE_REMOVE_SNAPSHOT: ON_INSTANCE,
  BACKUP_EXPORT: {
    ...ON_INSTANCE,
    locks: ({ name }) => [`export/${name}`, instanceLock(name)],
    boundUsers: 'neither',
    takesSpace: always,
  },
  BACKUP_REMOVE: { ...ON_ANY_NODE, locks: ({ name }) => [`export/${name}`] },
  OS_SET_PARAMS: { ...ON_CLUSTER, locks: ({ name }) => [`os/${splitOsName(name).name}`] },
  PROFILE_SET_PARAMS: ON_PROFILES,
  PROFILE_REMOVE: ON_PROFILES,
  NETWORK_ADD: ON_NETWORKS,
  NETWORK_SET_PARAMS: ON_NETWORKS,
  NETWORK_CONNECT: ON_NETWORKS,
  NETWORK_DISCONNECT: ON_NETWORKS,
  NETWORK_REMOVE: ON_NETWORKS,
  BOOTENV_SET: ON_BOOT_CONTENT,
  BOOTENV_REMOVE: ON_BOOT_CONTENT,
  BOOTENV_UPLOAD_ISO: { ...ON_CLUSTER, locks: () => ['boot-archives'] },
  BOOTENV_DESTROY_ISO: { ...ON_ANY_NODE, locks: () => ['boot-archives', 'bootenvs'] },
  CLUSTER_SET_PARAMS: { ...ON_CLUSTER, locks: () => ['cluster'] },
  TEST_DELAY: { ...ON_CLUSTER, locks: () => [] },
  NODE_SET_PARAMS: { ...ON_ANY_NODE, locks: ({ name }) => [`node/${name}`] },
};

/** Returns the traits of an opcode, with the type of the table widened to any opcode. */
export function traitsOf(opcode: Opcode): OpcodeTraits<Opcode> {
  return OPCODE_TRAITS[opcode.opcode];
}

/** Returns whether `name` names an existing or a new instance. */
export function namesInstance(opcode: Opcode): opcode is Named {
  return traitsOf(opcode).names !== 'other';
}
