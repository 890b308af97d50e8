import type { z } from 'zod';
import type { autostart } from './autostart.ts';
import type { BeParameters, diskSpec, HvParameters, nicSpec } from './machine-parameters.ts';
import type { NicNetworkTexts } from './static-network.ts';

/**
 * The keys of list options such as `--net` and `-H`: what `--net help`, shell completion, manual
 * pages and the reference print. A key of the schema without a row does not compile.
 */
export interface ParameterKey {
  /** Syntax of the value: `SIZE`, or the words that it can be with `|` between them. */
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

/** Keys of `-H`. */
export const hypervisorKeys: KeyTable<keyof HvParameters> = {
  accel: {
    value: 'auto|kvm|tcg',
    default: 'auto',
    effective: 'next start',
    help: 'Accelerator. auto uses KVM where it works, else emulation (tcg).',
  },
  firmware: {
    value: 'bios|uefi',
    default: 'bios',
    effective: 'next start',
    help: 'Firmware.',
  },
  boot_order: {
    value: 'disk|cdrom|network',
    default: 'disk',
    effective: 'next start',
    help: 'Boot devices in order, separated by a colon (cdrom:disk).',
  },
  cdrom_image_path: {
    value: 'PATH',
    default: null,
    effective: 'next start',
    help: 'CD-ROM image: an absolute path on the node. For installations also a URL.',
  },
  kernel_path: {
    value: 'PATH',
    default: null,
    effective: 'next start',
    help: 'Kernel on the node that QEMU loads. The boot loader of the guest is not used.',
  },
  initrd_path: {
    value: 'PATH',
    default: null,
    effective: 'next start',
    help: 'Initial RAM disk for kernel_path.',
  },
  kernel_args: {
    value: 'TEXT',
    default: null,
    effective: 'next start',
    help: 'Command line for kernel_path.',
  },
  boot_report: {
    value: 'vendor-data|user-data|no',
    default: 'vendor-data',
    effective: 'next start',
    help: 'How cloud-init reports its boot. EC2 datasources need user-data.',
  },
  decommission_timeout: {
    value: 'NUMBER',
    default: '180',
    unit: 'seconds',
    effective: 'at once',
    help: 'Time for the decommission scripts. The host cuts the power 300 s later.',
  },
  systemd_credentials: {
    value: 'yes|no',
    default: 'yes',
    effective: 'next start',
    help: 'Pass host name, SSH keys and network to systemd in the guest by SMBIOS.',
  },
  metadata_hop_limit: {
    value: '1..255',
    default: '1',
    effective: 'at once',
    help: 'IP TTL of answers of the metadata service. Containers in the guest need 2 or more.',
  },
  metadata_request_rate: {
    value: '1..1000000',
    default: '200',
    unit: 'requests per second',
    effective: 'at once',
    help: 'Limit of requests to the metadata service. It refuses more with status 429.',
  },
  metadata_request_burst: {
    value: '1..1000000',
    default: '400',
    unit: 'requests',
    effective: 'at once',
    help: 'Requests above the rate that are accepted at once.',
  },
  metadata_connections: {
    value: '1..10000',
    default: '64',
    effective: 'at once',
    help: 'Open connections to the metadata service.',
  },
  metadata_connection_rate: {
    value: '1..1000000',
    default: '400',
    unit: 'connections per second',
    effective: 'next start',
    help: 'Limit of new connections to the metadata service. The packet filter drops more.',
  },
};

/** Keys of `-H` without effect on an installation: they belong to the installed guest. */
export const NOT_OF_INSTALLATIONS = ['decommission_timeout', 'systemd_credentials'] as const;

type InstallKey = Exclude<keyof HvParameters, (typeof NOT_OF_INSTALLATIONS)[number]>;

/** Keys of `--install-parameters`: those of `-H` that have an effect on an installation. */
export const installKeys: KeyTable<InstallKey> = chooseInstallKeys(hypervisorKeys);

function chooseInstallKeys(keys: KeyTable<keyof HvParameters>): KeyTable<InstallKey> {
  const rows = Object.entries(keys)
    .filter(([key]) => NOT_OF_INSTALLATIONS.every((other) => other !== key))
    .map(([key, row]) => [key, { ...row, effective: 'installation' }]);
  // The rows above, each with its key.
  return Object.fromEntries(rows) as KeyTable<InstallKey>;
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
