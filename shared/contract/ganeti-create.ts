import { GROUP } from './node-group.ts';
import { imageFormat } from './primitives.ts';
import { type PlainPlace, plainSettings, type ValueType } from './parameter-keys.ts';
import { readNicNetwork } from './static-network.ts';
import { ownValue } from '../json/own-value.ts';
import { MIB } from '../units/bytes.ts';
import { readSizeMiB } from '../units/parse-size.ts';
import { z } from 'zod';

// Creations of instances in Ganeti's format, for the remote API and `gnt-instance batch-create`.
// The opcode checks the values.

export const ignored = z.unknown().optional();
/** A parameter without a counterpart here. Clients may send Ganeti's default for it. */
export function defaultOnly(
  reason: string,
  ...defaults: readonly boolean[]
): z.ZodOptional<z.ZodLiteral<boolean | null>> {
  return z.literal([null, ...defaults], { error: reason }).optional();
}
/** Parameters of every Ganeti opcode, which have no effect here. */
export const common = {
  debug_level: ignored,
  priority: ignored,
  reason: ignored,
  comment: ignored,
  dry_run: defaultOnly("add 'dry-run=1' to the query instead", false),
  depends: defaultOnly('jobs do not depend on other jobs'),
} as const;
export const NAMED = 'give the name, not the UUID';
/** Parameters that Ganeti's clients send by default and that have no effect here. */
export const withoutMeaning = {
  ...common,
  ip_check: ignored,
  name_check: ignored,
  conflicts_check: ignored,
  wait_for_sync: ignored,
  ignore_ipolicy: ignored,
  opportunistic_locking: ignored,
  file_driver: ignored,
  identify_defaults: ignored,
} as const;

export const text = z.string().max(65_536);
const osParameters = z.record(z.string(), z.union([text, z.number().transform(String)]));
export const osParameterChanges = z.record(
  z.string(),
  z.union([text, z.number().transform(String), z.null()]),
);
export const parameters = z.record(z.string(), z.unknown());
const count = z.number().int();

/** MiB, or text with a unit: Ganeti takes both. */
export const size = z
  .union([z.int(), z.string()])
  .transform((given) => readSizeMiB(String(given)))
  .refine((sizeMiB) => sizeMiB !== undefined, 'expected MiB or a size such as 10G');

export const nicRequest = z.strictObject({
  mac: z.string().optional(),
  mode: z.string().optional(),
  link: z.string().optional(),
  vlan: z.literal(['', null], { error: 'VLANs are not supported' }).optional(),
  /** Ganeti's older name for the link of a bridged NIC. */
  bridge: z.string().optional(),
  name: z.string().nullish(),
  ip: z.string().nullish(),
  gateway: z.string().optional(),
  dns: z.string().optional(),
  search: z.string().optional(),
  routes: z.string().optional(),
  mtu: z.union([z.number(), z.string()]).optional(),
  /** The name of a network, as in Ganeti. */
  network: z.string().nullish(),
});
export const diskRequest = z.strictObject({
  /** MiB. */
  size,
  name: z.string().nullish(),
  mode: z.literal('rw').optional(),
});

export const beparams = z.strictObject({
  memory: size.optional(),
  maxmem: size.optional(),
  vcpus: count.optional(),
  ...{ minmem: ignored, auto_balance: ignored },
  ...{ always_failover: ignored, spindle_use: ignored },
});

/** Parameters beyond Ganeti's, named as the options of our commands. */
export const beyondGaneti = {
  os_image: text.optional(),
  os_image_checksum: text.optional(),
  os_image_grow: z.boolean().optional(),
  os_image_format: imageFormat.or(z.literal('auto')).optional(),
  personalization_package: text.optional(),
  personalization_checksum: text.optional(),
  personalization_user: text.optional(),
  personalization_password: text.optional(),
  enable_safe_install: z.boolean().optional(),
  install_parameters: parameters.optional(),
  ...plainBody('installation'),
} as const;
/** The boot through the channel, for creations, reinstallations and changes. */
export const booting = {
  bootenv: z.string().optional(),
  profiles: z.array(z.string()).optional(),
} as const;
/** The metadata that dialects offer, with documents as text. */
export const metadata = {
  user_data: z.string().optional(),
  vendor_data: z.string().optional(),
  network_config: z.string().optional(),
  ssh_keys: z.array(z.string()).optional(),
  metadata: parameters.optional(),
  ...plainBody('metadata'),
} as const;

/** Returns the schema of plain settings by their names in bodies. The opcode checks the words. */
export function plainBody(place: PlainPlace): Record<string, z.ZodOptional> {
  return Object.fromEntries(
    plainNames(place).map(([, name, type]) => {
      const value = 'list' in type ? z.array(z.string()) : z.string();
      return [name, ('isSwitch' in type ? z.boolean() : value).optional()];
    }),
  );
}

/** Returns the given settings of a place under their names in opcodes. */
export function readPlain(
  place: PlainPlace,
  given: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(plainNames(place).map(([key, name]) => [key, ownValue(given, name)]));
}

function plainNames(place: PlainPlace): readonly (readonly [string, string, ValueType])[] {
  return Object.entries(plainSettings).flatMap(([key, row]) =>
    row.place === place && 'rapi' in row ? [[key, row.rapi, row.type] as const] : [],
  );
}

const imports = defaultOnly('import an export on its node: gnt-backup import');
const reserved = defaultOnly('an instance cannot be reserved before it is created', false);
const helper = defaultOnly('an installation has one timeout: gnt-instance add --install-timeout');

/** An opcode INSTANCE_CREATE of Ganeti as JSON. */
export const ganetiCreate = z.strictObject({
  ...withoutMeaning,
  ...beyondGaneti,
  ...booting,
  ...metadata,
  mode: z.literal('create').optional(),
  instance_name: z.string(),
  os_type: z.string().nullish(),
  /** Placement does the work of Ganeti's `hail`. */
  iallocator: z
    .literal([null, 'hail', '.'], { error: "expected 'hail': placement chooses the node" })
    .optional(),
  group_name: z.literal([null, GROUP], { error: `the only node group is '${GROUP}'` }).optional(),
  snode: defaultOnly('disks have no replica'),
  ...{ snode_uuid: defaultOnly(NAMED), pnode_uuid: defaultOnly(NAMED) },
  file_storage_dir: defaultOnly('the node chooses the folder of its disks'),
  ...{ source_handshake: imports, source_instance_name: imports, source_x509_ca: imports },
  ...{ src_node: imports, src_node_uuid: imports, src_path: imports },
  ...{ source_shutdown_timeout: ignored, compress: ignored },
  ...{ forthcoming: reserved, commit: reserved },
  ...{ helper_startup_timeout: helper, helper_shutdown_timeout: helper },
  force_variant: z.boolean().optional(),
  hypervisor: z.literal('kvm').nullish(),
  disk_template: z.string(),
  disks: z.array(diskRequest).max(16),
  nics: z.array(nicRequest).max(8),
  beparams: beparams.optional(),
  hvparams: parameters.optional(),
  osparams: osParameters.nullish(),
  osparams_private: osParameters.nullish(),
  osparams_secret: osParameters.nullish(),
  pnode: z.string().nullish(),
  start: z.boolean().optional(),
  no_install: z.boolean().nullish(),
  instance_communication: z.boolean().optional(),
  tags: z.array(z.string()).optional(),
});

type InstallationRequest = z.output<z.ZodObject<typeof beyondGaneti>>;
type BootingRequest = z.output<z.ZodObject<typeof booting>>;
type MetadataRequest = z.output<z.ZodObject<typeof metadata>>;
type BackendRequest = z.output<typeof beparams>;
type Disk = z.output<typeof diskRequest>;
type Nic = z.output<typeof nicRequest>;

/** Returns an opcode whose own schema has not checked it. */
export function planCreate(given: z.output<typeof ganetiCreate>): Record<string, unknown> & {
  readonly opcode: 'INSTANCE_CREATE';
} {
  const { 'os-image': imageParameter, ...osparams } = given.osparams ?? {};
  return {
    opcode: 'INSTANCE_CREATE',
    name: given.instance_name,
    osType: given.os_type ?? undefined,
    forceVariant: given.force_variant,
    ...planInstallation(given),
    ...planBooting(given),
    // In Ganeti, an image is a parameter of the OS.
    osImage: given.os_image ?? imageParameter,
    osParameters: osparams,
    osParametersPrivate: given.osparams_private ?? undefined,
    osParametersSecret: given.osparams_secret ?? undefined,
    ...planDocuments(given),
    diskTemplate: given.disk_template,
    disks: given.disks.map(planDisk),
    nics: given.nics.map(planNic),
    beparams: planBackend(given.beparams),
    hvparams: given.hvparams,
    node: given.pnode ?? undefined,
    start: given.start,
    install: !(given.no_install ?? false),
    communication: given.instance_communication,
    tags: given.tags,
  };
}

export function planDisk({ size: sizeMiB, name }: Disk): object {
  return { sizeBytes: sizeMiB * MIB, name: name ?? undefined };
}

export function planNic({ mac, mode, link, bridge, name, network, ...nic }: Nic): object {
  const { ip, gateway, dns, search, routes, mtu } = nic;
  return {
    mac: mac === 'generate' ? 'auto' : mac,
    mode,
    link: link ?? bridge,
    name: name ?? undefined,
    networkName: network ?? undefined,
    ...readNicNetwork({ ip: ip ?? undefined, gateway, dns, search, routes, mtu }),
  };
}

export function planInstallation(given: InstallationRequest): Record<string, unknown> {
  return {
    osImageChecksum: given.os_image_checksum,
    osImageGrow: given.os_image_grow,
    osImageFormat: given.os_image_format,
    personalizationPackage: given.personalization_package,
    personalizationChecksum: given.personalization_checksum,
    personalizationUser: given.personalization_user,
    personalizationPassword: given.personalization_password,
    safeInstall: given.enable_safe_install,
    installParameters: given.install_parameters,
    ...readPlain('installation', given),
  };
}

export function planBooting({ bootenv, profiles }: BootingRequest): Record<string, unknown> {
  return { bootEnv: bootenv, profiles };
}

export function planDocuments(given: MetadataRequest): Record<string, unknown> {
  return {
    userData: toBase64(given.user_data),
    vendorData: toBase64(given.vendor_data),
    networkConfig: toBase64(given.network_config),
    sshKeys: given.ssh_keys,
    metadata: given.metadata,
    ...readPlain('metadata', given),
  };
}

export function planBackend(given: BackendRequest | undefined): object {
  return { memoryMiB: given?.maxmem ?? given?.memory, vcpus: given?.vcpus };
}

function toBase64(document: string | undefined): string | undefined {
  return document === undefined ? undefined : Buffer.from(document).toString('base64');
}
