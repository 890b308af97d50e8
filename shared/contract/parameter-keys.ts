import type { z } from 'zod';
import type { autostart } from './autostart.ts';
import type { BeParameters, diskSpec, nicSpec } from './machine-parameters.ts';
import type { NicNetworkTexts } from './static-network.ts';

/**
 * The keys of list options such as `--net` and `-H`: what `--net help`, shell completion, manual
 * pages and the reference print. A key of the schema without a row does not compile.
 */
export interface ParameterKey {
  /** Syntax of the value: `SIZE`, or the possible words with `|` between them. */
  readonly value: string;
  /** Null: the key has no default. */
  readonly default: string | null;
  /** At most 100 characters, starting with a verb or a noun. */
  readonly help: string;
  /** Unit of a bare number. */
  readonly unit?: string;
  readonly effective: Effective;
}

/** When a change to an existing instance takes effect. */
export type Effective = 'at once' | 'next start' | 'installation' | 'fixed';

export type KeyTable<Key extends string = string> = Readonly<Record<Key, ParameterKey>>;

type NicKey =
  | Exclude<keyof z.input<typeof nicSpec>, 'network' | 'networkName'>
  | keyof NicNetworkTexts
  | 'network';

/** Keys of `--net N:…`. A running instance gets a new NIC at once. */
export const nicKeys: KeyTable<NicKey> = {
  network: {
    value: 'NAME',
    default: null,
    effective: 'next start',
    help: 'Network of the cluster (gnt-network list) in place of link; needs ip=pool or ip=ADDRESS.',
  },
  mode: {
    value: 'bridged|user',
    default: 'bridged',
    effective: 'next start',
    help: 'Connect to a bridge of the node, or by NAT of the QEMU process (user).',
  },
  link: {
    value: 'BRIDGE',
    default: 'br0',
    effective: 'next start',
    help: 'Bridge of the node, for mode=bridged.',
  },
  ip: {
    value: 'pool|ADDRESS[/PREFIX]',
    default: 'DHCP',
    effective: 'next start',
    help: 'Address: pool or an address of the network, else ADDRESS/PREFIX. Several: separate with ;.',
  },
  gateway: {
    value: 'ADDRESS',
    default: null,
    effective: 'next start',
    help: 'Default gateway; needs ip=ADDRESS/PREFIX. At most one IPv4 and one IPv6 address.',
  },
  dns: {
    value: 'ADDRESS;…',
    default: null,
    effective: 'next start',
    help: 'Name servers; needs ip=ADDRESS/PREFIX. At most 8.',
  },
  search: {
    value: 'DOMAIN;…',
    default: null,
    effective: 'next start',
    help: 'Search domains; needs ip=ADDRESS/PREFIX. At most 8.',
  },
  routes: {
    value: 'NETWORK/PREFIX@GATEWAY;…',
    default: null,
    effective: 'next start',
    help: 'Static routes; needs ip=ADDRESS/PREFIX. At most 32.',
  },
  mtu: {
    value: '576..65535',
    default: '1500',
    unit: 'bytes',
    effective: 'next start',
    help: 'Largest packet that the guest sends.',
  },
  mac: {
    value: 'auto|MAC',
    default: 'auto',
    effective: 'next start',
    help: 'MAC address of the NIC.',
  },
  reach: {
    value: 'all|public',
    default: 'all',
    effective: 'next start',
    help: 'With mode=user or a NAT network: reach all addresses, or no private ones (public).',
  },
  name: {
    value: 'NAME',
    default: null,
    effective: 'at once',
    help: 'Name of the NIC, for modify and for the metadata.',
  },
};

type DiskKey = Exclude<keyof z.input<typeof diskSpec>, 'sizeBytes'> | 'size';

/** Keys of `--disk N:…`. */
export const diskKeys: KeyTable<DiskKey> = {
  size: {
    value: 'SIZE',
    default: null,
    unit: 'MiB',
    effective: 'fixed',
    help: 'Size of the disk, such as 10G or 512M. Required. Later: gnt-instance grow-disk.',
  },
  name: {
    value: 'NAME',
    default: null,
    effective: 'at once',
    help: 'Name of the disk, for modify and for the metadata.',
  },
};

type BackendKey = Exclude<keyof BeParameters, 'memoryMiB'> | 'memory';

/** Keys of `-B`. */
export const backendKeys: KeyTable<BackendKey> = {
  memory: {
    value: 'SIZE',
    default: '512M',
    unit: 'MiB',
    effective: 'next start',
    help: 'Memory of the instance, such as 2G.',
  },
  vcpus: {
    value: '1..255',
    default: '1',
    effective: 'next start',
    help: 'Virtual processors.',
  },
};

/**
 * The hypervisor parameters of instances (`-H`), in the order of the record. Made from these rows:
 * the schemas of opcodes and records, parsing, help and completion of the options, reference pages,
 * fields of `gnt-instance list`, and the rules for bound users and for running instances. Without
 * zod, since `--help` loads it.
 */
export interface HypervisorParameter extends Omit<ParameterKey, 'value' | 'default'> {
  readonly topic: (typeof TOPICS)[number];
  readonly type: ParameterType;
  /** Syntax of the value in help, where the type does not show it. */
  readonly syntax?: string;
  readonly default: string | number | null;
  /**
   * Greatest value for users who are bound to instances: that of the schema, or the default of a
   * number. Use the default where instances compete for a resource of the node.
   */
  readonly mostOfBound: 'schema' | 'default';
  /** The parameter belongs to the installed guest and has no effect on an installation. */
  readonly isOfGuest?: true;
  /** Description of the field `hv/NAME` of `gnt-instance list`. Words have a default there. */
  readonly listed?: string;
}

export type ParameterType =
  | { readonly words: readonly string[] }
  | { readonly least: number; readonly most: number }
  | { readonly maxLength: number }
  /** A file of the node, or the URL of one. */
  | { readonly isFile: true };

/** Order of the parameters in help. The topic `boot` selects the source of the boot. */
const TOPICS = ['machine', 'boot', 'guest', 'metadata'] as const;

export const hypervisorParameters = {
  accel: {
    topic: 'machine',
    type: { words: ['auto', 'kvm', 'tcg'] },
    default: 'auto',
    effective: 'next start',
    help: 'Accelerator. auto uses KVM where it works, else emulation (tcg).',
    mostOfBound: 'schema',
    listed: 'Configured acceleration',
  },
  boot_order: {
    topic: 'boot',
    type: { maxLength: 64 },
    syntax: 'disk|cdrom|network',
    default: 'disk',
    effective: 'next start',
    help: 'Boot devices in order, separated by a colon (cdrom:disk).',
    mostOfBound: 'schema',
    listed: 'Boot order',
  },
  cdrom_image_path: {
    topic: 'boot',
    type: { isFile: true },
    default: null,
    effective: 'next start',
    help: 'CD-ROM image: an absolute path on the node. For installations also a URL.',
    mostOfBound: 'schema',
    listed: 'CD-ROM image',
  },
  firmware: {
    topic: 'machine',
    type: { words: ['bios', 'uefi'] },
    default: 'bios',
    effective: 'next start',
    help: 'Firmware.',
    mostOfBound: 'schema',
    listed: 'Firmware',
  },
  watchdog: {
    topic: 'machine',
    type: { words: ['no', 'reset', 'inject-nmi'] },
    default: 'no',
    effective: 'next start',
    help: 'Watchdog device (i6300esb): reset a guest that hangs, or make its kernel dump (inject-nmi).',
    mostOfBound: 'schema',
    isOfGuest: true,
    listed: 'Watchdog device',
  },
  kernel_path: {
    topic: 'boot',
    type: { isFile: true },
    default: null,
    effective: 'next start',
    help: 'Kernel on the node that QEMU loads. The boot loader of the guest is not used.',
    mostOfBound: 'schema',
    listed: 'Kernel',
  },
  initrd_path: {
    topic: 'boot',
    type: { isFile: true },
    default: null,
    effective: 'next start',
    help: 'Initial RAM disk for kernel_path.',
    mostOfBound: 'schema',
    listed: 'Initial RAM disk',
  },
  kernel_args: {
    topic: 'boot',
    type: { maxLength: 2048 },
    default: null,
    effective: 'next start',
    help: 'Command line for kernel_path.',
    mostOfBound: 'schema',
    listed: 'Kernel command line',
  },
  metadata_hop_limit: {
    topic: 'metadata',
    type: { least: 1, most: 255 },
    default: 1,
    effective: 'at once',
    help: 'IP TTL of answers of the metadata service. Containers in the guest need 2 or more.',
    mostOfBound: 'schema',
  },
  metadata_request_rate: {
    topic: 'metadata',
    type: { least: 1, most: 1_000_000 },
    default: 200,
    unit: 'requests per second',
    effective: 'at once',
    help: 'Limit of requests to the metadata service. It refuses more with status 429.',
    mostOfBound: 'default',
  },
  metadata_request_burst: {
    topic: 'metadata',
    type: { least: 1, most: 1_000_000 },
    default: 400,
    unit: 'requests',
    effective: 'at once',
    help: 'Requests above the rate that are accepted at once.',
    mostOfBound: 'default',
  },
  metadata_connections: {
    topic: 'metadata',
    type: { least: 1, most: 10_000 },
    default: 64,
    effective: 'at once',
    help: 'Open connections to the metadata service.',
    mostOfBound: 'default',
  },
  metadata_connection_rate: {
    topic: 'metadata',
    type: { least: 1, most: 1_000_000 },
    // Twice the rate of requests: a client with a connection per request gets status 429 before
    // its packets are dropped.
    default: 400,
    unit: 'connections per second',
    effective: 'next start',
    help: 'Limit of new connections to the metadata service. The packet filter drops more.',
    mostOfBound: 'default',
  },
  boot_report: {
    topic: 'guest',
    type: { words: ['vendor-data', 'user-data', 'no'] },
    default: 'vendor-data',
    effective: 'next start',
    help: 'How cloud-init reports its boot. EC2 datasources need user-data.',
    mostOfBound: 'schema',
  },
  decommission_timeout: {
    topic: 'guest',
    // RightLink: 50 minutes, 110 with the tag `medium`, 230 with `long`; default on Linux 180 s.
    type: { least: 1, most: 230 * 60 },
    syntax: 'NUMBER',
    default: 180,
    unit: 'seconds',
    effective: 'at once',
    help: 'Time for the decommission scripts. The host cuts the power 300 s later.',
    mostOfBound: 'schema',
    isOfGuest: true,
  },
  systemd_credentials: {
    topic: 'guest',
    type: { words: ['yes', 'no'] },
    default: 'yes',
    effective: 'next start',
    help: 'Pass host name, SSH keys and network to systemd in the guest by SMBIOS.',
    mostOfBound: 'schema',
    isOfGuest: true,
  },
} as const satisfies Readonly<Record<string, HypervisorParameter>>;

type Rows = typeof hypervisorParameters;
export type HypervisorKey = keyof Rows;
type FileKey = {
  [Key in HypervisorKey]: Rows[Key]['type'] extends { readonly isFile: true } ? Key : never;
}[HypervisorKey];

/** The rows of the table, in its order. */
export const hypervisorRows: readonly (readonly [HypervisorKey, HypervisorParameter])[] =
  // Object.entries returns string keys.
  Object.entries(hypervisorParameters) as [HypervisorKey, HypervisorParameter][];

/** The rows in the order of help. */
export const hypervisorRowsByTopic = TOPICS.flatMap((topic) =>
  hypervisorRows.filter(([, row]) => row.topic === topic),
);

/** The rows of numbers that users who are bound to instances cannot raise above the default. */
export const boundedRows = hypervisorRows.filter(([, row]) => row.mostOfBound === 'default');

/** Keys that select the source of the boot. */
export const BOOT_PARAMETERS = keysWhere(({ topic }) => topic === 'boot');
/** Keys that name a file of the node. */
export const FILE_PARAMETERS = keysWhere(({ type }) => 'isFile' in type) as readonly FileKey[];
/** Keys without effect on an installation: they belong to the installed guest. */
export const NOT_OF_INSTALLATIONS = keysWhere(({ isOfGuest }) => isOfGuest === true);

function keysWhere(isMeant: (row: HypervisorParameter) => boolean): readonly HypervisorKey[] {
  return hypervisorRows.filter(([, row]) => isMeant(row)).map(([key]) => key);
}

/** Keys of `-H`. */
export const hypervisorKeys: KeyTable<HypervisorKey> = tableOf(hypervisorRowsByTopic);

/** Keys of `--install-parameters`: those of `-H` that have an effect on an installation. */
export const installKeys: KeyTable = tableOf(
  hypervisorRowsByTopic
    .filter(([key]) => !NOT_OF_INSTALLATIONS.includes(key))
    .map(([key, row]) => [key, { ...row, effective: 'installation' }]),
);

function tableOf<Key extends string>(
  rows: readonly (readonly [Key, HypervisorParameter])[],
): KeyTable<Key> {
  const entries = rows.map(([key, { default: usual, unit, effective, help, ...row }]) => {
    const value = row.syntax ?? syntaxOf(row.type);
    const shown = usual === null ? null : String(usual);
    return [key, { value, default: shown, ...(unit && { unit }), effective, help }];
  });
  // fromEntries returns string keys and any.
  return Object.fromEntries(entries) as KeyTable<Key>;
}

function syntaxOf(type: HypervisorParameter['type']): string {
  if ('words' in type) return type.words.join('|');
  if ('least' in type) return `${type.least}..${type.most}`;
  return 'isFile' in type ? 'PATH' : 'TEXT';
}

/**
 * Settings of instances that are stored as given and have an option of their own. Made from these
 * rows: the option of each command, the opcodes, the record, the changes of modify and reinstall,
 * and the bodies of the remote API. The name of the option is that of the key.
 */
interface PlainSetting {
  /** `installation`: of add, reinstall and modify. `metadata`: of add and modify. */
  readonly place: 'installation' | 'metadata';
  /** Value in the syntax of the option. */
  readonly syntax: string;
  /** Help of the option. */
  readonly help: string;
  readonly type: ValueType;
  readonly default: boolean | string | readonly string[];
  /** Name in bodies of the remote API. Absent: the remote API does not have the setting. */
  readonly rapi?: string;
  /** The first release has the setting, so that each record contains it. */
  readonly isInAllRecords?: true;
}

export type ValueType =
  | { readonly isSwitch: true }
  | { readonly words: readonly string[] }
  /** At least one of these words. */
  | { readonly list: readonly string[] };

/** Dialects without `gce`, whose clients expect the name service of Google's network. */
const DEFAULT_DIALECTS = ['ganeti', 'ec2', 'openstack', 'nocloud'] as const;
const DIALECTS = [...DEFAULT_DIALECTS, 'gce'] as const;

export const plainSettings = {
  mediumSuccess: {
    place: 'installation',
    syntax: 'report|poweroff',
    help: 'What ends an installation from a medium: its report, or poweroff or reboot (default report)',
    type: { words: ['report', 'poweroff'] },
    default: 'report',
  },
  seedDisk: {
    place: 'metadata',
    syntax: 'yes|no',
    help: 'Attach a disk that leads cloud-init to the channel (default: as -C)',
    type: { isSwitch: true },
    // False: the operator refused a seed disk. It needs the channel and the dialect nocloud.
    default: true,
    rapi: 'seed_disk',
    isInAllRecords: true,
  },
  dialects: {
    place: 'metadata',
    syntax: 'list',
    help: 'Serve these of ganeti,ec2,openstack,nocloud,gce (default all but gce)',
    type: { list: DIALECTS },
    default: DEFAULT_DIALECTS,
    rapi: 'dialects',
    isInAllRecords: true,
  },
  metadataToken: {
    place: 'metadata',
    syntax: 'policy',
    help: 'Session tokens; required also refuses cloud-init without EC2 (default optional)',
    type: { words: ['optional', 'required'] },
    default: 'optional',
    rapi: 'metadata_token',
    isInAllRecords: true,
  },
} as const satisfies Readonly<Record<string, PlainSetting>>;

type PlainRows = typeof plainSettings;
export type PlainPlace = PlainSetting['place'];
export type PlainKey<Place extends PlainPlace> = {
  [Key in keyof PlainRows]: PlainRows[Key]['place'] extends Place ? Key : never;
}[keyof PlainRows];

export function plainKeysOf<Place extends PlainPlace>(place: Place): readonly PlainKey<Place>[] {
  const entries = Object.entries(plainSettings).filter(([, row]) => row.place === place);
  // Object.entries returns string keys.
  return entries.map(([key]) => key as PlainKey<Place>);
}

/** Returns the long name of the option of a setting: `--seed-disk` of `seedDisk`. */
export function optionOf(key: string): string {
  return `--${key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

type AutostartKey = Exclude<keyof z.infer<typeof autostart>, 'boot' | 'delayS' | 'lostSecrets'>;

/** Keys of `--autostart`, beside the bare words yes and no. */
export const autostartKeys: KeyTable<AutostartKey | 'delay' | 'lost_secrets' | 'yes' | 'no'> = {
  yes: {
    value: '',
    default: 'yes',
    effective: 'at once',
    help: 'Start the instance after a reboot of the node.',
  },
  no: {
    value: '',
    default: null,
    effective: 'at once',
    help: 'Do not start the instance after a reboot of the node.',
  },
  priority: {
    value: '0..1000',
    default: '100',
    effective: 'at once',
    help: 'Order of the starts: lower numbers first, equal numbers together.',
  },
  delay: {
    value: '0..3600',
    default: '0',
    unit: 'seconds',
    effective: 'at once',
    help: 'Wait after this start before the next one.',
  },
  restarts: {
    value: '0..100',
    default: '0',
    effective: 'at once',
    help: 'Restarts after a crash, within eight hours.',
  },
  lost_secrets: {
    value: 'start|wait',
    default: 'start',
    effective: 'at once',
    help: 'Start without secrets that a reboot lost, or wait for them.',
  },
};
