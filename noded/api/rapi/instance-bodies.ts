import { imageFormat } from '#shared/contract/primitives.ts';
import { type PlainPlace, plainSettings, type ValueType } from '#shared/contract/parameter-keys.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { z } from 'zod';
import { diskChange, diskRequest, nicChange, nicRequest, size } from './instance-parts.ts';

/** Bodies of requests, by Ganeti's names. The opcodes check the values. */
const ignored = z.unknown().optional();
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
const NAMED = 'instances and nodes are named, not identified by UUID';
const uuidOfInstance = { instance_uuid: defaultOnly(NAMED) } as const;
/** Parameters that Ganeti's clients send by default and that have no effect here. */
const withoutMeaning = {
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

const text = z.string().max(65_536);
const osParameters = z.record(z.string(), z.union([text, z.number().transform(String)]));
const osParameterChanges = z.record(
  z.string(),
  z.union([text, z.number().transform(String), z.null()]),
);
const parameters = z.record(z.string(), z.unknown());
const seconds = z.number().nonnegative();
const count = z.number().int();

const beparams = z.strictObject({
  memory: size.optional(),
  maxmem: size.optional(),
  vcpus: count.optional(),
  ...{ minmem: ignored, auto_balance: ignored },
  ...{ always_failover: ignored, spindle_use: ignored },
});

/** Parameters beyond Ganeti's, named as the options of our commands. */
const beyondGaneti = {
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
const booting = {
  bootenv: z.string().optional(),
  profiles: z.array(z.string()).optional(),
} as const;
/** The metadata that dialects offer, with documents as text. */
const metadata = {
  user_data: z.string().optional(),
  vendor_data: z.string().optional(),
  network_config: z.string().optional(),
  ssh_keys: z.array(z.string()).optional(),
  metadata: parameters.optional(),
  ...plainBody('metadata'),
} as const;

/** Returns the schema of plain settings by their names in bodies. The opcode checks the words. */
function plainBody(place: PlainPlace): Record<string, z.ZodOptional> {
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

export const createRequest = z.strictObject({
  ...withoutMeaning,
  ...beyondGaneti,
  ...booting,
  ...metadata,
  __version__: z.literal(1),
  mode: z.literal('create'),
  instance_name: z.string(),
  os_type: z.string().nullish(),
  /** Placement does the work of Ganeti's `hail`. */
  iallocator: z
    .literal([null, 'hail', '.'], { error: "expected 'hail': placement chooses the node" })
    .optional(),
  group_name: z
    .literal([null, 'default'], { error: "the only node group is 'default'" })
    .optional(),
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

export const reinstallRequest = z.strictObject({
  ...common,
  ...uuidOfInstance,
  ...beyondGaneti,
  ...booting,
  os: z.string().nullish(),
  force_variant: z.boolean().optional(),
  start: z.boolean().optional(),
  osparams: osParameterChanges.nullish(),
  osparams_private: osParameterChanges.nullish(),
  osparams_secret: osParameterChanges.nullish(),
  shutdown_timeout: seconds.optional(),
});

const conversion = defaultOnly('disks cannot change their template');
const moves = defaultOnly('move the instance by PUT /2/instances/NAME/migrate');

export const modifyRequest = z.strictObject({
  ...withoutMeaning,
  ...uuidOfInstance,
  ...metadata,
  ...booting,
  force: ignored,
  /** Disks and NICs are added to a running instance at once where possible. */
  ...{ hotplug: ignored, hotplug_if_possible: ignored },
  runtime_mem: defaultOnly('the memory of a guest changes at its next start'),
  ...{ disk_template: conversion, file_storage_dir: conversion },
  ext_params: z.strictObject({}, { error: 'there are no external storage providers' }).optional(),
  ...{ pnode: moves, pnode_uuid: moves, iallocator: moves },
  ...{ remote_node: moves, remote_node_uuid: moves },
  offline: defaultOnly('an instance has no state beside up and down', false),
  os_name: z.string().nullish(),
  force_variant: z.boolean().optional(),
  osparams: osParameterChanges.nullish(),
  osparams_private: osParameterChanges.nullish(),
  osparams_secret: osParameterChanges.nullish(),
  beparams: beparams.optional(),
  hvparams: parameters.optional(),
  instance_communication: z.boolean().nullish(),
  install_parameters: parameters.optional(),
  ...plainBody('installation'),
  personalization_package: text.nullable().optional(),
  personalization_checksum: text.nullable().optional(),
  disks: z.array(diskChange).max(16).optional(),
  nics: z.array(nicChange).max(16).optional(),
});

export const profileRequest = z.strictObject({
  ...common,
  osparams: osParameterChanges.optional(),
  osparams_private: osParameterChanges.optional(),
});

export const removeRequest = z.strictObject({
  ...common,
  ...uuidOfInstance,
  shutdown_timeout: seconds.optional(),
  ignore_failures: defaultOnly('a removal that fails can be repeated', false),
});
export const shutdownRequest = z.strictObject({
  ...common,
  ...uuidOfInstance,
  timeout: seconds.optional(),
  force: ignored,
  ignore_offline_nodes: defaultOnly('the node of the instance must answer', false),
  no_remember: defaultOnly('a shutdown always changes the desired state', false),
  admin_state_source: ignored,
});
export const rebootRequest = z.strictObject({
  ...common,
  ...uuidOfInstance,
  shutdown_timeout: seconds.optional(),
  ignore_secondaries: ignored,
});
/** `amount` in MiB. */
export const growRequest = z.strictObject({
  ...withoutMeaning,
  ...uuidOfInstance,
  amount: size,
  absolute: z.boolean().optional(),
});
export const migrateRequest = z.strictObject({
  ...common,
  ...uuidOfInstance,
  live: defaultOnly('a migration is live', true),
  target_node_uuid: defaultOnly(NAMED),
  ignore_hvversions: ignored,
  mode: z.literal('live', { error: "expected 'live'" }).nullish(),
  cleanup: z.boolean().nullish(),
  target_node: z.string().nullish(),
  allow_failover: z.literal(false, { error: 'use the failover resource' }).nullish(),
  iallocator: ignored,
  ignore_ipolicy: ignored,
  allow_runtime_changes: ignored,
});
export const failoverRequest = z.strictObject({
  ...common,
  ...uuidOfInstance,
  target_node_uuid: defaultOnly(NAMED),
  cleanup: defaultOnly('a failover leaves nothing to clean up', false),
  target_node: z.string().nullish(),
  iallocator: ignored,
  ignore_consistency: ignored,
  ignore_ipolicy: ignored,
  shutdown_timeout: ignored,
});
export const exportRequest = z.strictObject({
  ...common,
  ...uuidOfInstance,
  target_node_uuid: defaultOnly(NAMED),
  ...{ zeroing_timeout_fixed: ignored, zeroing_timeout_per_mib: ignored, long_sleep: ignored },
  mode: z.literal('local', { error: "expected 'local'" }).optional(),
  destination: z.string().optional(),
  shutdown: z.literal(true, { error: 'an export stops the instance' }).nullish(),
  shutdown_timeout: seconds.optional(),
  remove_instance: z.literal(false, { error: 'remove the instance by its own job' }).nullish(),
  ignore_remove_failures: ignored,
  x509_key_name: ignored,
  destination_x509_ca: ignored,
  compress: ignored,
  zero_free_space: ignored,
});
export const renameRequest = z.strictObject({
  ...withoutMeaning,
  ...uuidOfInstance,
  new_name: z.string(),
});

export type InstallationRequest = z.output<z.ZodObject<typeof beyondGaneti>>;
export type BootingRequest = z.output<z.ZodObject<typeof booting>>;
export type MetadataRequest = z.output<z.ZodObject<typeof metadata>>;
export type BackendRequest = z.output<typeof beparams>;
